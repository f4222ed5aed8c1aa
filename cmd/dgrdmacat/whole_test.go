package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk returns the directory of a file system of 2 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestFullDiskKeepsWhatIsThere: what is installed is replaced by all of the new one,
// or not at all.
func TestFullDiskKeepsWhatIsThere(t *testing.T) {
	dir := smallDisk(t)
	t.Setenv("HOME", dir)
	dissector := ".local/lib/wireshark/plugins/dgrdma.lua"
	os.MkdirAll(filepath.Join(dir, filepath.Dir(dissector)), 0o755)
	want := map[string]string{dissector: "old", "dgrdmacat.1": "old page", "dgrdmacat-top.1": "old page"}
	for name, content := range want {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(dir, "all the rest"), make([]byte, 2<<20), 0o644)
	for _, args := range [][]string{{"man", "--dir", dir}, {"wireshark", "--install", "--force"}} {
		if code, _, stderr := runFor(t, t.Context(), args...); code != exitError || strings.Count(stderr, "no space left on device") != 1 {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
	}
	for name, content := range want {
		if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != content {
			t.Errorf("%s has %d bytes, %v", name, len(b), err)
		}
	}
	for _, pages := range []string{"dgrdmacat*", ".local/lib/wireshark/plugins/*"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pages)); len(left) > 2 {
			t.Errorf("left: %v", left)
		}
	}
}
