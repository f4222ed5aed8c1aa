package localfs_test

import (
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
)

func memoryUser(t *testing.T, o *localfs.MemoryOptions) *nfs3test.User {
	return nfs3test.NewUser(t, localfs.NewMemory(o), nil)
}

// TestMemoryIsBounded checks that data and entries are bounded, that holes take nothing, and that what
// is removed or cut gives its memory back.
func TestMemoryIsBounded(t *testing.T) {
	u := memoryUser(t, &localfs.MemoryOptions{MaxBytes: 1 << 20, MaxFiles: 20})
	f := u.Create(u.Root, "f", 0o644)
	u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Size: new(uint64(1 << 40))}))
	u.Write(f.Handle, 1<<39, "x")
	if got := u.Read(f.Handle, 1<<39-1, 3); got != "\x00x\x00" {
		t.Errorf("%q", got)
	}
	data := make([]byte, 1<<20)
	w, _, err := u.FS.Write(u.Ctx, nil, f.Handle, data, 0, nfs3.Unstable)
	if err != nil || w.Count >= 1<<20 || w.Count < 900_000 {
		t.Errorf("beyond what there is %d octets were written, %v", w.Count, err)
	}
	_, _, err = u.FS.Write(u.Ctx, nil, f.Handle, data, 1<<30, nfs3.Unstable)
	u.Want("a write into a full one", err, nfs3.ErrNoSpc)
	if s, _ := u.FS.FSStat(u.Ctx, nil, u.Root); s.FreeBytes > 1<<16 {
		t.Errorf("%+v", s)
	}
	u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Size: new(uint64(0))}))
	if s, _ := u.FS.FSStat(u.Ctx, nil, u.Root); s.FreeBytes != 1<<20 || s.FreeFiles != 19 {
		t.Errorf("after it was cut: %+v", s)
	}
	for i := range 19 {
		u.Write(u.Create(u.Root, fmt.Sprint(i), 0o644).Handle, 0, "some")
	}
	_, _, err = u.FS.Create(u.Ctx, nil, u.Root, "more", &nfs3.CreateHow{})
	u.Want("one more file", err, nfs3.ErrNoSpc)
	_, _, err = u.FS.Link(u.Ctx, nil, f.Handle, u.Root, "more")
	u.Want("one more link", err, nfs3.ErrNoSpc)
	for i := range 19 {
		_, err := u.FS.Remove(u.Ctx, nil, u.Root, fmt.Sprint(i))
		u.Must(err)
	}
	if s, _ := u.FS.FSStat(u.Ctx, nil, u.Root); s.FreeBytes != 1<<20 || s.FreeFiles != 19 {
		t.Errorf("after all were removed: %+v", s)
	}
}

// TestMemoryTellsChanges checks that each change has a later time than the one before, so that a client
// sees it (wcc_data).
func TestMemoryTellsChanges(t *testing.T) {
	u := memoryUser(t, nil)
	f := u.Create(u.Root, "f", 0o644)
	last := f.Attr
	for range 1000 {
		_, w, err := u.FS.Write(u.Ctx, nil, f.Handle, []byte("x"), 0, nfs3.Unstable)
		u.Must(err)
		if w.Before != nfs3.Pre(&last) || !last.Ctime.Before(w.After.Attr.Ctime) || !last.Mtime.Before(w.After.Attr.Mtime) {
			t.Fatalf("%+v, then %+v", last, w)
		}
		last = w.After.Attr
	}
}
