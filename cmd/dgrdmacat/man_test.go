package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestManFindsPages: where the help has them written, man finds them for who has the program in PATH.
func TestManFindsPages(t *testing.T) {
	t.Parallel()
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("there is no man")
	}
	if err := exec.Command(man, "--version").Run(); err != nil {
		t.Skip("man is another than man-db:", err)
	}
	gopath := t.TempDir()
	if err := os.Mkdir(filepath.Join(gopath, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`man --dir "(.*)"`).FindStringSubmatch(manCommand.about)
	if said == nil {
		t.Fatal("the help names no directory")
	}
	dir := strings.ReplaceAll(said[1], "$(go env GOPATH)", gopath)
	if code, out, stderr := runFor(t, t.Context(), "man", "--dir", dir); code != exitOK {
		t.Fatalf("code %d: %s%s", code, out, stderr)
	}
	c := exec.Command(man, "-w", "dgrdmacat-bench")
	c.Env = append(os.Environ(), "PATH="+filepath.Join(gopath, "bin")+":/usr/bin:/bin", "MANPATH=")
	out, err := c.CombinedOutput()
	if want := filepath.Join(gopath, "share/man/man1/dgrdmacat-bench.1"); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}
