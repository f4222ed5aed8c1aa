package nfs3_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestParallel has many users make, move, write, list and remove the same few files and directories at the
// same time. Any outcome of one operation is right; afterwards each name leads to its object, and all of
// it can be removed.
func TestParallel(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		dirs := []nfs3.Handle{u.Root, u.Mkdir(u.Root, "d0", 0o755).Handle, u.Mkdir(u.Root, "d1", 0o755).Handle}
		var all sync.WaitGroup
		for i := range uint64(6) {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, i))
				dir := func() nfs3.Handle { return dirs[r.IntN(len(dirs))] }
				name := func() string { return fmt.Sprint("d", r.IntN(6)) }
				for range fixture.Fewer(150, 40) {
					switch r.IntN(9) {
					case 0:
						u.FS.Create(u.Ctx, u.Cred, dir(), name(), &nfs3.CreateHow{Mode: nfs3.CreateMode(r.IntN(3)), Verifier: 1 + r.Uint64N(3)})
					case 1:
						u.FS.Mkdir(u.Ctx, u.Cred, dir(), name(), &nfs3.SetAttr{})
					case 2:
						u.FS.Remove(u.Ctx, u.Cred, dir(), name())
					case 3:
						u.FS.Rmdir(u.Ctx, u.Cred, dir(), name())
					case 4, 5:
						u.FS.Rename(u.Ctx, u.Cred, dir(), name(), dir(), name())
					case 6:
						if o, err := u.FS.Lookup(u.Ctx, u.Cred, dir(), name()); err == nil {
							u.FS.Write(u.Ctx, u.Cred, o.Handle, make([]byte, r.IntN(9000)), r.Uint64N(9000), nfs3.Unstable)
							u.FS.SetAttr(u.Ctx, u.Cred, o.Handle, &nfs3.SetAttr{Size: new(r.Uint64N(9000))}, nil)
						}
					case 7:
						if o, err := u.FS.Lookup(u.Ctx, u.Cred, dir(), name()); err == nil {
							u.FS.Link(u.Ctx, u.Cred, o.Handle, dir(), name())
						}
					case 8:
						u.FS.ReadDir(u.Ctx, u.Cred, dir(), nfs3.DirPosition{}, true, func(*nfs3.DirEntry) bool { return true })
					}
				}
			})
		}
		all.Wait()
		var clear func(dir nfs3.Handle, depth int)
		clear = func(dir nfs3.Handle, depth int) {
			if depth > 20 {
				t.Fatalf("seed %d: a directory is within itself", seed)
			}
			for _, e := range u.List(dir, true, 1000) {
				if e.Name == "." || e.Name == ".." {
					continue
				}
				o := u.Lookup(dir, e.Name)
				if o.Handle != e.Object.Handle || o.Attr.FileID != e.FileID || u.GetAttr(o.Handle).FileID != e.FileID {
					t.Errorf("seed %d: entry %+v is %+v", seed, e, o)
				}
				remove := u.FS.Remove
				if o.Attr.Type == nfs3.TypeDirectory {
					clear(o.Handle, depth+1)
					remove = u.FS.Rmdir
				}
				_, err := remove(u.Ctx, u.Cred, dir, e.Name)
				u.Must(err)
			}
		}
		clear(u.Root, 0)
		if m, ok := u.FS.(*localfs.Memory); ok {
			if s, _ := m.FSStat(u.Ctx, nil, u.Root); s.FreeBytes != s.TotalBytes || s.FreeFiles != s.TotalFiles {
				t.Errorf("seed %d: of nothing there is %+v", seed, s)
			}
		}
		if a := u.GetAttr(u.Root); a.Links > 2 {
			t.Errorf("seed %d: the empty root has %d links", seed, a.Links)
		}
	})
}
