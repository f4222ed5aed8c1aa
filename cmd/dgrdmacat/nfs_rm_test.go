package main

import (
	"testing"

	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

// TestNFSRm checks that files and links are removed, and no directories, over both transports.
func TestNFSRm(t *testing.T) {
	t.Parallel()
	r := serveNFS(t, localfs.NewMemory(nil), nil)
	r.overBoth(func(t *testing.T, at string) {
		if _, err := r.Stat("dir"); err != nil {
			r.must(r.Mkdir("dir", 0o755))
		}
		for _, name := range []string{"a", "b", "dir/c"} {
			r.must(r.WriteFile(name, nil, 0o644))
		}
		r.must(r.Symlink("dir", "link"))
		r.wants(t, []string{"nfs", "rm", at + "/a", at + "/link", at + "/dir/c"}, exitOK, "", "")
		r.wants(t, []string{"nfs", "rm", at + "/dir"}, exitError, "", at+"/dir is a directory, and nfs rm removes files\n")
		r.wants(t, []string{"nfs", "rm", at + "/b/"}, exitError, "", at+"/b is not a directory: leave out the / at its end\n")
		r.wants(t, []string{"nfs", "rm", at + "/a"}, exitError, "", at+"/a: no such file or directory\n")
		r.wants(t, []string{"nfs", "rm"}, exitUsage, "", "Give an ADDRESS")
		if entries, err := r.ReadDir("."); err != nil || len(entries) != 2 {
			t.Errorf("%v, %v", entries, err)
		}
	})
}
