package nfs3_test

import (
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

func memoryUser(t *testing.T, o *nfs3.MemoryOptions) *user {
	m := nfs3.NewMemory(o)
	root, _ := m.Root(t.Context())
	return &user{t, t.Context(), m, nil, root.Handle}
}

// TestMemoryIsBounded checks that data and entries are bounded, that holes take nothing, and that what
// is removed or cut gives its memory back.
func TestMemoryIsBounded(t *testing.T) {
	u := memoryUser(t, &nfs3.MemoryOptions{MaxBytes: 1 << 20, MaxFiles: 20})
	f := u.create(u.root, "f", 0o644)
	u.must(u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(1 << 40))}))
	u.write(f.Handle, 1<<39, "x")
	if got := u.read(f.Handle, 1<<39-1, 3); got != "\x00x\x00" {
		t.Errorf("%q", got)
	}
	data := make([]byte, 1<<20)
	w, _, err := u.fs.Write(u.ctx, nil, f.Handle, data, 0, nfs3.Unstable)
	if err != nil || w.Count >= 1<<20 || w.Count < 900_000 {
		t.Errorf("beyond what there is %d octets were written, %v", w.Count, err)
	}
	_, _, err = u.fs.Write(u.ctx, nil, f.Handle, data, 1<<30, nfs3.Unstable)
	u.want("a write into a full one", err, nfs3.ErrNoSpc)
	if s, _ := u.fs.FSStat(u.ctx, nil, u.root); s.FreeBytes > 1<<16 {
		t.Errorf("%+v", s)
	}
	u.must(u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(0))}))
	if s, _ := u.fs.FSStat(u.ctx, nil, u.root); s.FreeBytes != 1<<20 || s.FreeFiles != 19 {
		t.Errorf("after it was cut: %+v", s)
	}
	for i := range 19 {
		u.write(u.create(u.root, fmt.Sprint(i), 0o644).Handle, 0, "some")
	}
	_, _, err = u.fs.Create(u.ctx, nil, u.root, "more", &nfs3.CreateHow{})
	u.want("one more file", err, nfs3.ErrNoSpc)
	_, _, err = u.fs.Link(u.ctx, nil, f.Handle, u.root, "more")
	u.want("one more link", err, nfs3.ErrNoSpc)
	for i := range 19 {
		_, err := u.fs.Remove(u.ctx, nil, u.root, fmt.Sprint(i))
		u.must(err)
	}
	if s, _ := u.fs.FSStat(u.ctx, nil, u.root); s.FreeBytes != 1<<20 || s.FreeFiles != 19 {
		t.Errorf("after all were removed: %+v", s)
	}
}

// TestMemoryTellsChanges checks that each change has a later time than the one before, so that a client
// sees it (wcc_data).
func TestMemoryTellsChanges(t *testing.T) {
	u := memoryUser(t, nil)
	f := u.create(u.root, "f", 0o644)
	last := f.Attr
	for range 1000 {
		_, w, err := u.fs.Write(u.ctx, nil, f.Handle, []byte("x"), 0, nfs3.Unstable)
		u.must(err)
		if w.Before != nfs3.Pre(&last) || !last.Ctime.Before(w.After.Attr.Ctime) || !last.Mtime.Before(w.After.Attr.Mtime) {
			t.Fatalf("%+v, then %+v", last, w)
		}
		last = w.After.Attr
	}
}
