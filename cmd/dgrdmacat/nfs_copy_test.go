package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// TestNFSOddNames checks that files and directories whose names are not UTF-8, or have what a terminal acts on, are copied to a server and back, and can be named,
// over both transports.
func TestNFSOddNames(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	names := []string{"caf\xe9", "a\nb", "\x1b[31m", "100%"}
	from := t.TempDir()
	for _, name := range names {
		r.must(os.Mkdir(filepath.Join(from, name), 0o755))
		r.must(os.WriteFile(filepath.Join(from, name, name), []byte(name), 0o644))
	}
	r.overBoth(func(t *testing.T, at string) {
		copied := at + "/" + t.Name()[len("TestNFSOddNames/"):]
		if code, _, stderr := runFor(t, patient(t), "nfs", "put", "-r", from, copied); code != exitOK {
			t.Fatal(stderr)
		}
		to := filepath.Join(t.TempDir(), "copy")
		if code, _, stderr := runFor(t, patient(t), "nfs", "get", "-r", copied, to); code != exitOK {
			t.Fatal(stderr)
		}
		for _, name := range names {
			if got, err := os.ReadFile(filepath.Join(to, name, name)); err != nil || string(got) != name {
				t.Errorf("%q: %q, %v", name, got, err)
			}
			r.wants(t, []string{"nfs", "cat", copied + "/" + name + "/" + name}, exitOK, name, "")
		}
	})
}

// TestNFSRate checks that many small files are told by how many a second were copied, and others by their bytes.
func TestNFSRate(t *testing.T) {
	for want, r := range map[string]nfsCopied{
		"20.0 files/s": {Files: 40, Bytes: 900, Seconds: 2, MBPerS: 0.00045}, "94.1 MB/s": {Files: 40, Seconds: 2, MBPerS: 94.1}, "0.500 MB/s": {Files: 1, Seconds: 2, MBPerS: 0.5},
	} {
		if got := r.rate(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
