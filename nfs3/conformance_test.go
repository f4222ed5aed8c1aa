package nfs3_test

import (
	"os"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
)

// kinds are the file systems that must all behave alike, used by their methods and by server and client.
var kinds = map[string]func(t *testing.T) nfs3.FS{
	"memory":    func(*testing.T) nfs3.FS { return localfs.NewMemory(nil) },
	"directory": openDirectory,

	"memory over TCP":    func(t *testing.T) nfs3.FS { return remote(t, localfs.NewMemory(nil), serve) },
	"directory over TCP": func(t *testing.T) nfs3.FS { return remote(t, openDirectory(t), serve) },

	"memory over RDMA":    func(t *testing.T) nfs3.FS { return remote(t, localfs.NewMemory(nil), serveRDMA) },
	"directory over RDMA": func(t *testing.T) nfs3.FS { return remote(t, openDirectory(t), serveRDMA) },
}

func openDirectory(t *testing.T) nfs3.FS {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	d, err := localfs.OpenDirectory(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// onEach runs a test for each kind.
func onEach(t *testing.T, test func(t *testing.T, u *nfs3test.User)) {
	for _, kind := range sorted(kinds) {
		t.Run(kind, func(t *testing.T) {
			test(t, nfs3test.NewUser(t, kinds[kind](t), &nfs3.Cred{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}))
		})
	}
}

func names(entries []nfs3.DirEntry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return all
}
