package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// madeAt is when the commit of the tests was made.
var madeAt = time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)

// committed returns a clone of one commit with a tag: the sources as they are here.
func committed(t *testing.T, tag string) string {
	t.Helper()
	dir := t.TempDir()
	from := []string{"--git-dir=" + filepath.Join(dir, ".git"), "--work-tree=.."}
	for _, args := range [][]string{
		{"init", "-q", dir}, append(from, "add", "-A"), append(from, "commit", "-q", "-m", "all"),
		{"-C", dir, "tag", tag}, {"-C", dir, "reset", "-q", "--hard"},
	} {
		cmd := exec.Command("git", args...)
		date := madeAt.Format(time.RFC3339)
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=s@example.org", "GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=s@example.org",
			"GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}
	return dir
}

// made returns what a directory holds, by name.
func made(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]byte)
	for _, path := range files {
		if all[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestReleaseIsTheSameEverywhere: two clones of a commit, in directories of different length and
// with different settings of Go, give the same bytes, and in them is what a user needs.
func TestReleaseIsTheSameEverywhere(t *testing.T) {
	fixture.OfTheGate(t)
	arch := runtime.GOARCH
	clone := committed(t, "v0.7.0-rc.1")
	one, other := t.TempDir(), t.TempDir()
	o := options{out: one, archs: []string{arch}, log: io.Discard}
	if err := release(t.Context(), clone, o); err != nil {
		t.Fatal(err)
	}
	farther := filepath.Join(t.TempDir(), strings.Repeat("far", 20))
	if err := os.Rename(clone, farther); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GOFLAGS", "-buildvcs=false -ldflags=-X=main.x=y")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("TZ", "Asia/Tokyo")
	o.out = other
	if err := release(t.Context(), farther, o); err != nil {
		t.Fatal(err)
	}
	got, again := made(t, one), made(t, other)
	if err := same(got, again); err != nil {
		t.Error(err)
	}
	archive, deb := "dgrdmacat-0.7.0-rc.1-linux-"+arch+".tar.gz", "dgrdmacat_0.7.0~rc.1-1_"+arch+".deb"
	sums := fmt.Sprintf("%x  %s\n%x  %s\n", sha256.Sum256(got[archive]), archive, sha256.Sum256(got[deb]), deb)
	if len(got) != 3 || string(got["SHA256SUMS"]) != sums {
		t.Fatalf("made %v, with the sums\n%s", slices.Sorted(maps.Keys(got)), got["SHA256SUMS"])
	}
	top := "dgrdmacat-0.7.0-rc.1-linux-" + arch + "/"
	unpacked := entries(t, got[archive])
	for name, want := range map[string]string{
		"LICENSE": "Apache License", "README.md": "# dgrdma", "CHANGELOG.md": "# Changes", "docs/commands.md": "dgrdmacat",
		"man/man1/dgrdmacat.1": ".TH DGRDMACAT 1", "man/man1/dgrdmacat-send.1": ".TH DGRDMACAT-SEND 1",
		"completions/dgrdmacat": "complete -o filenames", "completions/_dgrdmacat": "#compdef dgrdmacat", "completions/dgrdmacat.fish": "complete -c dgrdmacat",
		"licences/go/LICENSE": "Google", "licences/golang.org/x/sys/LICENSE": "Google", "licences/github.com/prometheus/client_golang/NOTICE": "Prometheus",
	} {
		if !strings.Contains(string(unpacked[top+name]), want) {
			t.Errorf("%s of the archive has no %q: %.100q", name, want, unpacked[top+name])
		}
	}
	path := filepath.Join(t.TempDir(), "dgrdmacat")
	if err := os.WriteFile(path, unpacked[top+"dgrdmacat"], 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "dgrdmacat v0.7.0-rc.1, revision ") || strings.Contains(string(out), "unknown") {
		t.Errorf("the program of the archive: %q, %v", out, err)
	}
	members := membersOf(t, got[deb])
	control := string(entries(t, members["control.tar.gz"])["./control"])
	for _, want := range []string{"Package: dgrdmacat\n", "Version: 0.7.0~rc.1-1\n", "Architecture: " + arch + "\n", "Maintainer: somebody <s@example.org>\n"} {
		if !strings.Contains(control, want) {
			t.Errorf("control has no %q:\n%s", want, control)
		}
	}
	installed := entries(t, members["data.tar.gz"])
	if !bytes.Equal(installed["./usr/bin/dgrdmacat"], unpacked[top+"dgrdmacat"]) {
		t.Error("the package has another program than the archive")
	}
	for _, name := range []string{
		"man/man1/dgrdmacat-send.1.gz", "bash-completion/completions/dgrdmacat", "zsh/vendor-completions/_dgrdmacat", "fish/vendor_completions.d/dgrdmacat.fish",
		"doc/dgrdmacat/copyright", "doc/dgrdmacat/changelog.gz", "doc/dgrdmacat/changelog.Debian.gz", "doc/dgrdmacat/README.md", "doc/dgrdmacat/docs/commands.md",
	} {
		if len(installed["./usr/share/"+name]) == 0 {
			t.Errorf("the package has no %s", name)
		}
	}
	if err := os.WriteFile(filepath.Join(farther, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := release(t.Context(), farther, o); err == nil || !strings.Contains(err.Error(), "?? new") {
		t.Errorf("what is not committed: %v", err)
	}
}

// entries are the regular files of an archive. All that is in it is root's and of the commit's
// time, and sorted.
func entries(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all, before := make(map[string][]byte), ""
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		mode := int64(0o644)
		if h.Typeflag == tar.TypeDir || strings.HasSuffix(h.Name, "/bin/"+program) || strings.HasSuffix(h.Name, "-linux-"+runtime.GOARCH+"/"+program) {
			mode = 0o755
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(madeAt) || h.Name <= before || h.Mode != mode {
			t.Errorf("%s behind %s: of %d.%d, mode %o, %v", h.Name, before, h.Uid, h.Gid, h.Mode, h.ModTime)
		}
		before = h.Name
		if h.Typeflag == tar.TypeReg {
			if all[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// membersOf takes a package apart.
func membersOf(t *testing.T, deb []byte) map[string][]byte {
	t.Helper()
	rest, is := bytes.CutPrefix(deb, []byte("!<arch>\n"))
	all := make(map[string][]byte)
	for is && len(rest) >= 60 {
		var size int
		if _, err := fmt.Sscan(string(rest[48:58]), &size); err != nil || 60+size > len(rest) {
			t.Fatalf("a member of %d bytes, %v", size, err)
		}
		all[strings.TrimSpace(string(rest[:16]))] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	if string(all["debian-binary"]) != "2.0\n" || len(all) != 3 || len(rest) != 0 {
		t.Fatalf("no package: %v", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// TestDebianVersions: dpkg sorts them as Go sorts what they are made of.
func TestDebianVersions(t *testing.T) {
	var before string
	for _, c := range []struct{ version, want string }{
		{"0.0.0-20261125203045-811d40cabcde", "0.0.0~20261125203045.811d40cabcde-1"},
		{"0.1.0-rc.1", "0.1.0~rc.1-1"},
		{"0.1.0-rc.1.0.20261125203045-811d40cabcde", "0.1.0~rc.1.0.20261125203045.811d40cabcde-1"},
		{"0.1.0", "0.1.0-1"},
		{"0.1.1-0.20261125203045-811d40cabcde", "0.1.1~0.20261125203045.811d40cabcde-1"},
		{"0.1.1", "0.1.1-1"},
	} {
		got := debianVersion(c.version)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.version, got, c.want)
		}
		if dpkg, err := exec.LookPath("dpkg"); err == nil && before != "" {
			if err := exec.Command(dpkg, "--compare-versions", before, "lt", got).Run(); err != nil {
				t.Errorf("dpkg does not sort %s before %s", before, got)
			}
		}
		before = got
	}
}

// TestDifferencesAreFound: -check says which file differs, and where.
func TestDifferencesAreFound(t *testing.T) {
	one := map[string][]byte{"a": []byte("same"), "b": []byte("sane")}
	for _, c := range []struct {
		other map[string][]byte
		want  string
	}{
		{map[string][]byte{"a": []byte("same"), "b": []byte("sane")}, ""},
		{map[string][]byte{"a": []byte("same"), "b": []byte("sale")}, "b has 4 bytes and 4, the first that differs is at 2"},
		{map[string][]byte{"a": []byte("same")}, "b has 4 bytes and 0"},
		{map[string][]byte{"a": []byte("same"), "b": []byte("sane"), "c": nil}, "more files"},
	} {
		err := same(one, c.other)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.other, err, c.want)
		}
	}
}
