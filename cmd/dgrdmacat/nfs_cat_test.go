package main

import (
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// TestNFSCat checks that files are printed one after the other, through links, and what is said of what is no file.
func TestNFSCat(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	big := string(random(1, 10<<20+77))
	r.must(r.WriteFile("big", []byte(big), 0o600))
	r.must(r.WriteFile("empty", nil, 0o600))
	r.must(r.Mkdir("dir", 0o755))
	r.must(r.WriteFile("dir/small", []byte("small"), 0o600))
	r.must(r.Symlink("dir/small", "link"))
	r.must(r.Symlink("/etc/passwd", "out"))
	r.overBoth(func(t *testing.T, at string) {
		if code, out, stderr := runFor(t, patient(t), "nfs", "cat", at+"/big", at+"/empty", at+"/link"); code != exitOK || out != big+"small" {
			t.Errorf("code %d, %d bytes, %s", code, len(out), stderr)
		}
		r.wants(t, []string{"nfs", "cat", at + "/dir"}, exitError, "", at+"/dir: is a directory\n")
		r.wants(t, []string{"nfs", "cat", at + "/out"}, exitError, "", at+"/out: a symbolic link on the way leads out of the volume\n")
		r.wants(t, []string{"nfs", "cat", at + "/none"}, exitError, "", at+"/none: no such file or directory\n")
		r.wants(t, []string{"nfs", "cat"}, exitUsage, "", "Give an ADDRESS")
	})
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	r.must(err)
	defer full.Close()
	p := asProcess(t, "nfs", "cat", r.tcp+"/big")
	p.Stdout = full
	p.start()
	if code := p.code(); code != exitError || p.err.String() != "dgrdmacat nfs cat: write /dev/stdout: no space left on device\n" {
		t.Errorf("code %d: %s", code, &p.err)
	}
}
