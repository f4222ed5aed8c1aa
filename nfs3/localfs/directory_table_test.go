package localfs_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

// TestDeepDirectories checks that objects are reached down to as many directories as may be above them, that deeper ones are refused, whether they are to be made, moved or
// found there, and that directories that are moved below others until they are too deep can be moved back.
func TestDeepDirectories(t *testing.T) {
	const deepest = 30
	u, d, _ := directoryUser(t, nil)
	d.BoundDepth(deepest)
	d.BoundPlaces(deepest + 10)
	chain := func(name string, n int) (first, last nfs3.Object) {
		last.Handle = u.Root
		for i := range n {
			last = u.Mkdir(last.Handle, name, 0o755)
			if i == 0 {
				first = last
			}
		}
		return first, last
	}
	_, last := chain("a", deepest-1)
	u.Create(last.Handle, "file", 0o644)
	full := u.Mkdir(last.Handle, "b", 0o755)
	_, _, err := u.FS.Mkdir(u.Ctx, nil, full.Handle, "c", &nfs3.SetAttr{})
	u.Want("mkdir", err, nfs3.ErrNameTooLong)
	_, _, err = u.FS.Create(u.Ctx, nil, full.Handle, "c", &nfs3.CreateHow{})
	u.Want("create", err, nfs3.ErrNameTooLong)
	f := u.Create(u.Root, "f", 0o644)
	_, _, err = u.FS.Link(u.Ctx, nil, f.Handle, full.Handle, "c")
	u.Want("link", err, nfs3.ErrNameTooLong)
	_, _, err = u.FS.Rename(u.Ctx, nil, u.Root, "f", full.Handle, "c")
	u.Want("rename", err, nfs3.ErrNameTooLong)
	if entries := u.List(full.Handle, true, 10); len(entries) != 2 {
		t.Errorf("%v are there", entries)
	}
	top, low := chain("x", 2)
	_, _, err = u.FS.Rename(u.Ctx, nil, u.Root, "x", last.Handle, "x")
	u.Must(err)
	_, err = u.FS.GetAttr(u.Ctx, nil, low.Handle)
	u.Want("what is too deep now", err, nfs3.ErrNameTooLong)
	_, err = u.FS.Lookup(u.Ctx, nil, top.Handle, "x")
	u.Want("lookup of that", err, nfs3.ErrNameTooLong)
	_, _, err = u.FS.Rename(u.Ctx, nil, last.Handle, "x", u.Root, "x")
	u.Must(err)
	u.GetAttr(low.Handle)
	if n := d.Places(); n > deepest+10 {
		t.Errorf("%d places", n)
	}
	_, err = u.FS.Rmdir(u.Ctx, nil, last.Handle, "b")
	u.Must(err)
}
