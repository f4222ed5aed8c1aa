package nfs3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

// kinds are the file systems that must all behave alike, used by their methods and by server and client.
var kinds = map[string]func(t *testing.T) nfs3.FS{
	"memory":    func(*testing.T) nfs3.FS { return nfs3.NewMemory(nil) },
	"directory": openDirectory,

	"memory over TCP":    func(t *testing.T) nfs3.FS { return remote(t, nfs3.NewMemory(nil)) },
	"directory over TCP": func(t *testing.T) nfs3.FS { return remote(t, openDirectory(t)) },
}

func openDirectory(t *testing.T) nfs3.FS {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	d, err := nfs3.OpenDirectory(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// onEach runs a test for each kind.
func onEach(t *testing.T, test func(t *testing.T, u *user)) {
	for _, kind := range sorted(kinds) {
		t.Run(kind, func(t *testing.T) {
			fs := kinds[kind](t)
			root, err := fs.Root(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			test(t, &user{t, t.Context(), fs, &nfs3.Cred{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, root.Handle})
		})
	}
}

// user is a caller of a file system, whose test fails where an operation does.
type user struct {
	*testing.T
	ctx  context.Context
	fs   nfs3.FS
	cred *nfs3.Cred
	root nfs3.Handle
}

// as returns another user of the same file system.
func (u *user) as(uid, gid uint32, gids ...uint32) *user {
	other := *u
	other.cred = &nfs3.Cred{UID: uid, GID: gid, GIDs: gids}
	return &other
}

// must fails the test if err is not nil.
func (u *user) must(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

// want fails the test if err is not of this status.
func (u *user) want(what string, err error, want ...nfs3.Status) {
	u.Helper()
	if got := nfs3.StatusOf(err); !slices.Contains(want, got) {
		u.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

func ptr[T any](v T) *T { return &v }

func mode(m uint32) nfs3.SetAttr { return nfs3.SetAttr{Mode: &m} }

func (u *user) create(dir nfs3.Handle, name string, m uint32) nfs3.Object {
	u.Helper()
	o, _, err := u.fs.Create(u.ctx, u.cred, dir, name, &nfs3.CreateHow{Mode: nfs3.Guarded, Set: mode(m)})
	u.must(err)
	return o
}

func (u *user) mkdir(dir nfs3.Handle, name string, m uint32) nfs3.Object {
	u.Helper()
	o, _, err := u.fs.Mkdir(u.ctx, u.cred, dir, name, ptr(mode(m)))
	u.must(err)
	return o
}

func (u *user) write(h nfs3.Handle, offset uint64, data string) {
	u.Helper()
	w, _, err := u.fs.Write(u.ctx, u.cred, h, []byte(data), offset, nfs3.Unstable)
	u.must(err)
	if int(w.Count) != len(data) {
		u.Fatalf("%d octets of %d were written", w.Count, len(data))
	}
}

func (u *user) read(h nfs3.Handle, offset uint64, n int) string {
	u.Helper()
	b := make([]byte, n)
	n, _, err := u.fs.Read(u.ctx, u.cred, h, b, offset)
	u.must(err)
	return string(b[:n])
}

func (u *user) attr(h nfs3.Handle) nfs3.Attr {
	u.Helper()
	a, err := u.fs.GetAttr(u.ctx, u.cred, h)
	u.must(err)
	return a
}

func (u *user) lookup(dir nfs3.Handle, name string) nfs3.Object {
	u.Helper()
	o, err := u.fs.Lookup(u.ctx, u.cred, dir, name)
	u.must(err)
	return o
}

func (u *user) set(h nfs3.Handle, set nfs3.SetAttr) error {
	_, err := u.fs.SetAttr(u.ctx, u.cred, h, &set, nil)
	return err
}

// list returns the entries of a directory, asked for so many at a time.
func (u *user) list(dir nfs3.Handle, plus bool, at int) (all []nfs3.DirEntry) {
	u.Helper()
	var from nfs3.DirPosition
	for {
		n := 0
		end, err := u.fs.ReadDir(u.ctx, u.cred, dir, from, plus, func(e *nfs3.DirEntry) bool {
			if n == at {
				return false
			}
			n++
			from.Cookie = e.Cookie
			all = append(all, *e)
			return true
		})
		u.must(err)
		if from.Verifier = end.Verifier; end.EOF {
			return all
		}
		if len(all) > 1<<17 {
			u.Fatal("the directory has no end")
		}
	}
}

func names(entries []nfs3.DirEntry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return all
}

// hostile are names that no entry can have, and what they are answered with.
var hostile = map[string][]nfs3.Status{
	"":                                {nfs3.ErrInval},
	"/":                               {nfs3.ErrInval},
	"a/b":                             {nfs3.ErrInval},
	"../x":                            {nfs3.ErrInval},
	"/etc":                            {nfs3.ErrInval},
	"a\x00b":                          {nfs3.ErrInval},
	"\x00":                            {nfs3.ErrInval},
	strings.Repeat("n", 256):          {nfs3.ErrNameTooLong},
	strings.Repeat("n", 1000):         {nfs3.ErrNameTooLong},
	strings.Repeat("../", 90) + "etc": {nfs3.ErrNameTooLong},
}

// TestHostileNames checks that names that no entry can have are refused by every procedure that takes
// one.
func TestHostileNames(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		file := u.create(u.root, "file", 0o644)
		calls := map[string]func(name string) error{
			"lookup": func(name string) error { _, err := u.fs.Lookup(u.ctx, u.cred, u.root, name); return err },
			"guarded": func(name string) error {
				_, _, err := u.fs.Create(u.ctx, u.cred, u.root, name, &nfs3.CreateHow{Mode: nfs3.Guarded})
				return err
			},
			"unchecked": func(name string) error {
				_, _, err := u.fs.Create(u.ctx, u.cred, u.root, name, &nfs3.CreateHow{})
				return err
			},
			"exclusive": func(name string) error {
				_, _, err := u.fs.Create(u.ctx, u.cred, u.root, name, &nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 7})
				return err
			},
			"mkdir": func(name string) error {
				_, _, err := u.fs.Mkdir(u.ctx, u.cred, u.root, name, &nfs3.SetAttr{})
				return err
			},
			"symlink": func(name string) error {
				_, _, err := u.fs.Symlink(u.ctx, u.cred, u.root, name, "x", &nfs3.SetAttr{})
				return err
			},
			"mknod": func(name string) error {
				_, _, err := u.fs.Mknod(u.ctx, u.cred, u.root, name, &nfs3.NodeSpec{Type: nfs3.TypeFIFO})
				return err
			},
			"remove": func(name string) error { _, err := u.fs.Remove(u.ctx, u.cred, u.root, name); return err },
			"rmdir":  func(name string) error { _, err := u.fs.Rmdir(u.ctx, u.cred, u.root, name); return err },
			"rename": func(name string) error {
				_, _, err := u.fs.Rename(u.ctx, u.cred, u.root, name, u.root, "to")
				return err
			},
			"rename to": func(name string) error {
				_, _, err := u.fs.Rename(u.ctx, u.cred, u.root, "file", u.root, name)
				return err
			},
			"link": func(name string) error { _, _, err := u.fs.Link(u.ctx, u.cred, file.Handle, u.root, name); return err },
		}
		for call, f := range calls {
			for name, want := range hostile {
				u.want(fmt.Sprintf("%s %.20q", call, name), f(name), want...)
			}
			for _, name := range []string{".", ".."} {
				if err := f(name); call != "lookup" && nfs3.StatusOf(err) != nfs3.ErrInval && nfs3.StatusOf(err) != nfs3.ErrExist {
					t.Errorf("%s %q: %v", call, name, err)
				}
			}
		}
		if got := names(u.list(u.root, false, 9)); !slices.Equal(got, []string{".", "..", "file"}) {
			t.Errorf("afterwards there are %q", got)
		}
		for _, name := range []string{"ä", "\xff\xfe", "with space", "-", "...", strings.Repeat("n", 255)} {
			u.create(u.root, name, 0o600)
			u.lookup(u.root, name)
		}
		if o := u.lookup(u.root, ".."); o.Handle != u.root {
			t.Error("the root's parent is not the root")
		}
	})
}

// TestHandles checks that what is no handle of the file system is an error, and which.
func TestHandles(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		file := u.create(u.root, "file", 0o644)
		other := kinds["memory"](t)
		foreign, _ := other.Root(u.ctx)
		for _, h := range []nfs3.Handle{"", "x", nfs3.Handle(strings.Repeat("h", 64)), file.Handle + "x", file.Handle[:15]} {
			_, err := u.fs.GetAttr(u.ctx, u.cred, h)
			u.want(fmt.Sprint("handle ", h), err, nfs3.ErrBadHandle, nfs3.ErrStale)
		}
		_, err := u.fs.GetAttr(u.ctx, u.cred, foreign.Handle)
		u.want("a handle of another file system", err, nfs3.ErrStale)
		_, err = u.fs.Remove(u.ctx, u.cred, u.root, "file")
		u.must(err)
		_, err = u.fs.GetAttr(u.ctx, u.cred, file.Handle)
		u.want("a handle of what was removed", err, nfs3.ErrStale)
		again := u.create(u.root, "file", 0o644)
		if _, err = u.fs.GetAttr(u.ctx, u.cred, file.Handle); nfs3.StatusOf(err) != nfs3.ErrStale && again.Handle != file.Handle {
			t.Errorf("the handle of a former file of that name: %v", err)
		}
	})
}

// TestFiles checks data of files: writes, reads, holes, ends, sizes.
func TestFiles(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		f := u.create(u.root, "file", 0o644)
		if f.Attr.Size != 0 || f.Attr.Type != nfs3.TypeRegular || f.Attr.Mode != 0o644 || f.Attr.Links != 1 || f.Attr.FileID == 0 {
			t.Errorf("a new file has %+v", f.Attr)
		}
		u.write(f.Handle, 5, "hello")
		if got := u.read(f.Handle, 0, 100); got != "\x00\x00\x00\x00\x00hello" {
			t.Errorf("%q", got)
		}
		u.write(f.Handle, 200_000, "far")
		if got := u.read(f.Handle, 199_998, 100); got != "\x00\x00far" || u.attr(f.Handle).Size != 200_003 {
			t.Errorf("%q of %d", got, u.attr(f.Handle).Size)
		}
		u.must(u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(7))}))
		u.must(u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(12))}))
		if got := u.read(f.Handle, 0, 100); got != "\x00\x00\x00\x00\x00he\x00\x00\x00\x00\x00" {
			t.Errorf("cut and longer again it is %q", got)
		}
		for _, c := range []struct {
			offset uint64
			n      int
			got    int
			eof    bool
		}{{0, 11, 11, false}, {0, 12, 12, true}, {0, 13, 12, true}, {11, 1, 1, true}, {12, 1, 0, true}, {1 << 40, 1, 0, true}, {1<<63 - 1, 9, 0, true}, {1<<64 - 1, 9, 0, true}} {
			n, eof, err := u.fs.Read(u.ctx, u.cred, f.Handle, make([]byte, c.n), c.offset)
			if err != nil || n != c.got || eof != c.eof {
				t.Errorf("read %d at %d: %d, %v, %v", c.n, c.offset, n, eof, err)
			}
		}
		_, _, err := u.fs.Write(u.ctx, u.cred, f.Handle, []byte("x"), 1<<64-1, nfs3.Unstable)
		u.want("a write at the end of all offsets", err, nfs3.ErrFBig)
		u.want("a size beyond all", u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(1<<64 - 1))}), nfs3.ErrFBig)
		for stable := range nfs3.FileSync + 1 {
			w, wcc, err := u.fs.Write(u.ctx, u.cred, f.Handle, []byte("x"), 1, stable)
			if err != nil || w.Stable < stable || w.Count != 1 || wcc.After.Present && wcc.After.Attr.Size != 12 {
				t.Errorf("%v: %+v, %+v, %v", stable, w, wcc, err)
			}
			verifier, _, err := u.fs.Commit(u.ctx, u.cred, f.Handle, 0, 0)
			if err != nil || verifier != w.Verifier {
				t.Errorf("commit: verifier %x, written by %x, %v", verifier, w.Verifier, err)
			}
		}
		locked := u.create(u.root, "locked", 0o444)
		u.write(locked.Handle, 0, "as who has it open") // cp -p and git do so
		if a := u.attr(locked.Handle); a.Mode != 0o444 || a.Size != 18 {
			t.Errorf("%+v", a)
		}
		d := u.mkdir(u.root, "dir", 0o755)
		_, _, err = u.fs.Read(u.ctx, u.cred, d.Handle, make([]byte, 9), 0)
		u.want("read of a directory", err, nfs3.ErrIsDir)
		_, _, err = u.fs.Write(u.ctx, u.cred, d.Handle, make([]byte, 9), 0, nfs3.Unstable)
		u.want("write of a directory", err, nfs3.ErrIsDir)
		u.want("size of a directory", u.set(d.Handle, nfs3.SetAttr{Size: ptr(uint64(0))}), nfs3.ErrIsDir, nfs3.ErrInval)
		_, _, err = u.fs.Commit(u.ctx, u.cred, d.Handle, 0, 0)
		u.want("commit of a directory", err, nfs3.ErrIsDir, nfs3.ErrInval)
	})
}

// TestCreate checks the three modes of CREATE, and that an exclusive one can be sent again.
func TestCreate(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		create := func(name string, how nfs3.CreateHow) (nfs3.Object, error) {
			o, _, err := u.fs.Create(u.ctx, u.cred, u.root, name, &how)
			return o, err
		}
		a, err := create("a", nfs3.CreateHow{Set: mode(0o640)})
		u.must(err)
		u.write(a.Handle, 0, "data")
		b, err := create("a", nfs3.CreateHow{Set: mode(0o600)})
		if err != nil || b.Handle != a.Handle || b.Attr.Size != 4 || b.Attr.Mode != 0o640 {
			t.Errorf("unchecked again: %+v, %v", b, err)
		}
		b, err = create("a", nfs3.CreateHow{Set: nfs3.SetAttr{Size: ptr(uint64(0))}})
		if err != nil || b.Handle != a.Handle || b.Attr.Size != 0 {
			t.Errorf("unchecked with a size: %+v, %v", b, err)
		}
		_, err = create("a", nfs3.CreateHow{Mode: nfs3.Guarded})
		u.want("guarded again", err, nfs3.ErrExist)
		x, err := create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345678})
		u.must(err)
		again, err := create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345678})
		if err != nil || again.Handle != x.Handle {
			t.Errorf("exclusive, sent again: %+v, %v", again, err)
		}
		_, err = create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345679})
		u.want("exclusive of another", err, nfs3.ErrExist)
		_, err = create("a", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 1})
		u.want("exclusive of a file that is there", err, nfs3.ErrExist)
		u.must(u.set(x.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o600)), SetAtime: nfs3.ServerTime, SetMtime: nfs3.ServerTime}))
		u.mkdir(u.root, "d", 0o755)
		for _, how := range []nfs3.CreateMode{nfs3.Unchecked, nfs3.Guarded, nfs3.Exclusive} {
			_, err := create("d", nfs3.CreateHow{Mode: how, Verifier: 3})
			u.want("create over a directory", err, nfs3.ErrExist)
		}
		_, _, err = u.fs.Create(u.ctx, u.cred, a.Handle, "x", &nfs3.CreateHow{})
		u.want("create in a file", err, nfs3.ErrNotDir)
	})
}

// TestDirectories checks entries of directories: all of them, once, however many are asked for at a
// time, while others come and go.
func TestDirectories(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		d := u.mkdir(u.root, "d", 0o755)
		if d.Attr.Type != nfs3.TypeDirectory || d.Attr.Mode != 0o755 {
			t.Errorf("%+v", d.Attr)
		}
		want := []string{".", ".."}
		for i := range 300 {
			name := fmt.Sprintf("entry %d%s", i, strings.Repeat("x", i%200))
			u.create(d.Handle, name, 0o644)
			want = append(want, name)
		}
		slices.Sort(want)
		for _, at := range []int{1, 7, 300, 1000} {
			for _, plus := range []bool{false, true} {
				entries := u.list(d.Handle, plus, at)
				if got := names(entries); !slices.Equal(got, want) {
					t.Errorf("%d at a time: %d entries, want %d", at, len(got), len(want))
				}
				for _, e := range entries {
					if e.Name == ".." {
						continue
					}
					o := u.lookup(d.Handle, e.Name)
					if e.FileID != o.Attr.FileID || plus && (!e.Attr.Present || e.Attr.Attr != o.Attr || e.Object.Handle != o.Handle) {
						t.Fatalf("entry %+v is %+v", e, o)
					}
				}
			}
		}
		// What is removed behind the position does not matter for the rest.
		var from nfs3.DirPosition
		seen := map[string]bool{}
		for n := 0; ; n++ {
			end, err := u.fs.ReadDir(u.ctx, u.cred, d.Handle, from, false, func(e *nfs3.DirEntry) bool {
				if from.Cookie == e.Cookie || seen[e.Name] {
					t.Errorf("%q comes twice", e.Name)
				}
				from.Cookie = e.Cookie
				seen[e.Name] = true
				return len(seen)%10 != 0
			})
			u.must(err)
			if from.Verifier = end.Verifier; end.EOF || n > 1000 {
				break
			}
		}
		if len(seen) != len(want) {
			t.Errorf("%d entries, want %d", len(seen), len(want))
		}
		_, err := u.fs.Rmdir(u.ctx, u.cred, u.root, "d")
		u.want("rmdir of a full one", err, nfs3.ErrNotEmpty)
		_, err = u.fs.Remove(u.ctx, u.cred, u.root, "d")
		u.want("remove of a directory", err, nfs3.ErrIsDir, nfs3.ErrPerm)
		for _, name := range want[2:] {
			_, err := u.fs.Remove(u.ctx, u.cred, d.Handle, name)
			u.must(err)
		}
		links := u.attr(u.root).Links
		w, err := u.fs.Rmdir(u.ctx, u.cred, u.root, "d")
		u.must(err)
		if !w.Before.Present || !w.After.Present || w.Before.Mtime == w.After.Attr.Mtime && w.Before.Ctime == w.After.Attr.Ctime {
			t.Logf("coarse times: %+v", w) // a file system below may tell 4 ms at least
		}
		if now := u.attr(u.root).Links; now != links-1 && now != links {
			t.Errorf("%d links, were %d", now, links)
		}
		_, err = u.fs.ReadDir(u.ctx, u.cred, d.Handle, nfs3.DirPosition{}, false, func(*nfs3.DirEntry) bool { return true })
		u.want("readdir of what was removed", err, nfs3.ErrStale)
		f := u.create(u.root, "f", 0o644)
		_, err = u.fs.ReadDir(u.ctx, u.cred, f.Handle, nfs3.DirPosition{}, false, func(*nfs3.DirEntry) bool { return true })
		u.want("readdir of a file", err, nfs3.ErrNotDir)
		_, err = u.fs.Lookup(u.ctx, u.cred, f.Handle, "x")
		u.want("lookup in a file", err, nfs3.ErrNotDir)
		_, err = u.fs.Rmdir(u.ctx, u.cred, u.root, "f")
		u.want("rmdir of a file", err, nfs3.ErrNotDir)
		_, err = u.fs.Lookup(u.ctx, u.cred, u.root, "none")
		u.want("lookup of what is not there", err, nfs3.ErrNoEnt)
		_, err = u.fs.Remove(u.ctx, u.cred, u.root, "none")
		u.want("remove of what is not there", err, nfs3.ErrNoEnt)
	})
}

// TestRename checks that handles stay valid over a rename, also those of what is below a directory,
// and what may replace what.
func TestRename(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		a, b := u.mkdir(u.root, "a", 0o755), u.mkdir(u.root, "b", 0o755)
		sub := u.mkdir(a.Handle, "sub", 0o755)
		f := u.create(sub.Handle, "f", 0o644)
		u.write(f.Handle, 0, "data")
		rename := func(from nfs3.Object, name string, to nfs3.Object, newName string) error {
			_, _, err := u.fs.Rename(u.ctx, u.cred, from.Handle, name, to.Handle, newName)
			return err
		}
		u.must(rename(a, "sub", b, "moved"))
		if got := u.read(f.Handle, 0, 9); got != "data" {
			t.Errorf("%q", got)
		}
		if o := u.lookup(b.Handle, "moved"); o.Handle != sub.Handle {
			t.Error("the directory has another handle after it was moved")
		}
		if o := u.lookup(sub.Handle, ".."); o.Handle != b.Handle {
			t.Error(".. of what was moved is not the new parent")
		}
		u.want("into itself", rename(b, "moved", sub, "x"), nfs3.ErrInval)
		u.want("what is not there", rename(a, "none", b, "x"), nfs3.ErrNoEnt)
		g := u.create(a.Handle, "g", 0o600)
		u.must(rename(a, "g", sub, "f")) // replaces f
		if o := u.lookup(sub.Handle, "f"); o.Handle != g.Handle {
			t.Error("the file that was replaced is still there")
		}
		_, err := u.fs.GetAttr(u.ctx, u.cred, f.Handle)
		u.want("the file that was replaced", err, nfs3.ErrStale)
		u.mkdir(a.Handle, "empty", 0o755)
		u.want("a file over a directory", rename(sub, "f", a, "empty"), nfs3.ErrIsDir, nfs3.ErrExist)
		u.want("a directory over a file", rename(a, "empty", sub, "f"), nfs3.ErrNotDir, nfs3.ErrExist)
		u.want("over a directory that is not empty", rename(a, "empty", b, "moved"), nfs3.ErrNotEmpty, nfs3.ErrExist)
		u.must(rename(b, "moved", a, "empty"))
		if got := names(u.list(a.Handle, false, 5)); !slices.Equal(got, []string{".", "..", "empty"}) {
			t.Errorf("%q", got)
		}
		u.must(rename(a, "empty", a, "empty")) // the same
		h := u.create(u.root, "h", 0o600)
		_, _, err = u.fs.Link(u.ctx, u.cred, h.Handle, u.root, "h2")
		u.must(err)
		root := nfs3.Object{Handle: u.root}
		u.must(rename(root, "h", root, "h2")) // two names of one file: nothing happens
		u.lookup(u.root, "h")
		u.lookup(u.root, "h2")
	})
}

// TestLinks checks hard and symbolic links.
func TestLinks(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		f := u.create(u.root, "f", 0o644)
		after, _, err := u.fs.Link(u.ctx, u.cred, f.Handle, u.root, "g")
		u.must(err)
		g := u.lookup(u.root, "g")
		if !after.Present || after.Attr.Links != 2 || g.Handle != f.Handle || g.Attr.FileID != f.Attr.FileID {
			t.Errorf("%+v, %+v", after, g)
		}
		_, _, err = u.fs.Link(u.ctx, u.cred, f.Handle, u.root, "g")
		u.want("link over what is there", err, nfs3.ErrExist)
		_, err = u.fs.Remove(u.ctx, u.cred, u.root, "f")
		u.must(err)
		u.lookup(u.root, "g") // a client looks it up when it opens it
		u.write(g.Handle, 0, "still there")
		if a := u.attr(g.Handle); a.Links != 1 {
			t.Errorf("%d links", a.Links)
		}
		d := u.mkdir(u.root, "d", 0o755)
		_, _, err = u.fs.Link(u.ctx, u.cred, d.Handle, u.root, "d2")
		u.want("link of a directory", err, nfs3.ErrIsDir, nfs3.ErrPerm)
		for name, target := range map[string]string{"s": "g", "up": "../../etc/passwd", "long": strings.Repeat("t", 4095), "odd": "\xff\xfe"} {
			s, _, err := u.fs.Symlink(u.ctx, u.cred, u.root, name, target, &nfs3.SetAttr{})
			u.must(err)
			got, err := u.fs.ReadLink(u.ctx, u.cred, s.Handle)
			if err != nil || got != target || s.Attr.Type != nfs3.TypeSymlink || s.Attr.Size != uint64(len(target)) {
				t.Errorf("%q, %+v, %v", got, s, err)
			}
			if o := u.lookup(u.root, name); o.Attr.Type != nfs3.TypeSymlink {
				t.Error("lookup has followed a link")
			}
			_, _, err = u.fs.Read(u.ctx, u.cred, s.Handle, make([]byte, 9), 0)
			u.want("read of a link", err, nfs3.ErrInval)
			_, err = u.fs.Lookup(u.ctx, u.cred, s.Handle, "x")
			u.want("lookup in a link", err, nfs3.ErrNotDir)
			_, _, err = u.fs.Create(u.ctx, u.cred, u.root, name, &nfs3.CreateHow{})
			u.want("create over a link", err, nfs3.ErrExist)
		}
		_, err = u.fs.ReadLink(u.ctx, u.cred, g.Handle)
		u.want("readlink of a file", err, nfs3.ErrInval)
		fifo, _, err := u.fs.Mknod(u.ctx, u.cred, u.root, "fifo", &nfs3.NodeSpec{Type: nfs3.TypeFIFO, Set: mode(0o600)})
		u.must(err)
		if fifo.Attr.Type != nfs3.TypeFIFO || fifo.Attr.Mode != 0o600 {
			t.Errorf("%+v", fifo.Attr)
		}
		_, _, err = u.fs.Read(u.ctx, u.cred, fifo.Handle, make([]byte, 9), 0)
		u.want("read of a FIFO", err, nfs3.ErrInval)
		_, _, err = u.fs.Mknod(u.ctx, u.cred, u.root, "dir", &nfs3.NodeSpec{Type: nfs3.TypeDirectory})
		u.want("mknod of a directory", err, nfs3.ErrBadType)
	})
}

// TestAttributes checks SETATTR: modes, times, the guard.
func TestAttributes(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		f := u.create(u.root, "f", 0o644)
		u.must(u.set(f.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o4711)), SetAtime: nfs3.ClientTime, Atime: nfs3.Time{Seconds: 5, Nanoseconds: 6}, SetMtime: nfs3.ClientTime, Mtime: nfs3.Time{Seconds: 7, Nanoseconds: 8}}))
		a := u.attr(f.Handle)
		if a.Mode != 0o4711 || a.Atime != (nfs3.Time{Seconds: 5, Nanoseconds: 6}) || a.Mtime != (nfs3.Time{Seconds: 7, Nanoseconds: 8}) || a.Ctime.Seconds < 1e9 {
			t.Errorf("%+v", a)
		}
		u.must(u.set(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ServerTime}))
		if b := u.attr(f.Handle); b.Mtime.Seconds < 1e9 || b.Atime != a.Atime {
			t.Errorf("%+v", b)
		}
		old := u.attr(f.Handle).Ctime
		_, err := u.fs.SetAttr(u.ctx, u.cred, f.Handle, &nfs3.SetAttr{Mode: ptr(uint32(0o600))}, &nfs3.Time{Seconds: old.Seconds - 1})
		u.want("another guard", err, nfs3.ErrNotSync)
		_, err = u.fs.SetAttr(u.ctx, u.cred, f.Handle, &nfs3.SetAttr{Mode: ptr(uint32(0o600))}, &old)
		u.must(err)
		if a := u.attr(f.Handle); a.Mode != 0o600 {
			t.Errorf("%+v", a)
		}
		info, err := u.fs.FSInfo(u.ctx, u.cred, u.root)
		if err != nil || info.ReadMax < 1<<16 || info.WriteMax < 1<<16 || info.DirPref < 4096 || info.Properties&(nfs3.HasLinks|nfs3.HasSymlinks|nfs3.CanSetTime) == 0 {
			t.Errorf("%+v, %v", info, err)
		}
		conf, err := u.fs.PathConf(u.ctx, u.cred, u.root)
		if err != nil || conf.NameMax != 255 || !conf.NoTrunc || conf.CaseInsensitive {
			t.Errorf("%+v, %v", conf, err)
		}
		stat, err := u.fs.FSStat(u.ctx, u.cred, u.root)
		if err != nil || stat.TotalBytes == 0 || stat.FreeBytes > stat.TotalBytes || stat.AvailBytes > stat.FreeBytes {
			t.Errorf("%+v, %v", stat, err)
		}
	})
}

// TestPermissions checks who may do what, by mode, user, group and groups. Only the superuser's server
// can act for several users.
func TestPermissions(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act for several users")
	}
	onEach(t, func(t *testing.T, u *user) {
		alice, bob, carol := u.as(1001, 101), u.as(1002, 102, 101), u.as(1003, 103)
		f := alice.create(u.root, "f", 0o640)
		if f.Attr.UID != 1001 || f.Attr.GID != 101 || f.Attr.Mode != 0o640 {
			t.Fatalf("alice's file has %+v", f.Attr)
		}
		alice.write(f.Handle, 0, "hers")
		if got := bob.read(f.Handle, 0, 9); got != "hers" { // by his second group
			t.Errorf("%q", got)
		}
		_, _, err := bob.fs.Write(u.ctx, bob.cred, f.Handle, []byte("x"), 0, nfs3.Unstable)
		u.want("bob writes", err, nfs3.ErrAcces)
		_, _, err = carol.fs.Read(u.ctx, carol.cred, f.Handle, make([]byte, 9), 0)
		u.want("carol reads", err, nfs3.ErrAcces)
		all := nfs3.AccessRead | nfs3.AccessLookup | nfs3.AccessModify | nfs3.AccessExtend | nfs3.AccessDelete | nfs3.AccessExecute
		for who, want := range map[*user]nfs3.Access{alice: nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend, bob: nfs3.AccessRead, carol: 0, u: nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend} {
			if got, err := u.fs.Access(u.ctx, who.cred, f.Handle, all); err != nil || got != want {
				t.Errorf("user %d has %x, want %x: %v", who.cred.UID, got, want, err)
			}
		}
		u.want("bob chmods", bob.set(f.Handle, mode(0o777)), nfs3.ErrPerm)
		u.want("bob sets times", bob.set(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ClientTime}), nfs3.ErrPerm)
		u.want("bob touches", bob.set(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ServerTime}), nfs3.ErrAcces)
		u.want("alice gives it away", alice.set(f.Handle, nfs3.SetAttr{UID: ptr(uint32(1002))}), nfs3.ErrPerm)
		u.want("alice gives it to a group that is not hers", alice.set(f.Handle, nfs3.SetAttr{GID: ptr(uint32(103))}), nfs3.ErrPerm)
		alice.must(alice.set(f.Handle, mode(0o400)))
		alice.write(f.Handle, 0, "HERS") // as who has opened it before
		u.must(u.set(f.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o4755))}))
		alice.write(f.Handle, 0, "hers")
		if a := u.attr(f.Handle); a.Mode != 0o755 {
			t.Errorf("what alice has written is still set-user-id: %o", a.Mode)
		}
		u.must(u.set(f.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o6755))}))
		u.must(u.set(f.Handle, nfs3.SetAttr{UID: ptr(uint32(1002)), GID: ptr(uint32(102))}))
		if a := u.attr(f.Handle); a.UID != 1002 || a.GID != 102 || a.Mode != 0o755 {
			t.Errorf("given to bob it has %+v", a)
		}

		home := alice.mkdir(u.root, "home", 0o750)
		alice.create(home.Handle, "x", 0o644)
		bob.lookup(home.Handle, "x")
		_, _, err = bob.fs.Create(u.ctx, bob.cred, home.Handle, "y", &nfs3.CreateHow{})
		u.want("bob creates", err, nfs3.ErrAcces)
		_, err = bob.fs.Remove(u.ctx, bob.cred, home.Handle, "x")
		u.want("bob removes", err, nfs3.ErrAcces)
		_, err = carol.fs.Lookup(u.ctx, carol.cred, home.Handle, "x")
		u.want("carol looks up", err, nfs3.ErrAcces)
		_, err = carol.fs.ReadDir(u.ctx, carol.cred, home.Handle, nfs3.DirPosition{}, false, func(*nfs3.DirEntry) bool { return true })
		u.want("carol lists", err, nfs3.ErrAcces)

		tmp := u.mkdir(u.root, "tmp", 0o1777)
		alice.create(tmp.Handle, "hers", 0o666)
		_, err = bob.fs.Remove(u.ctx, bob.cred, tmp.Handle, "hers")
		u.want("bob removes from a sticky directory", err, nfs3.ErrPerm, nfs3.ErrAcces)
		_, _, err = bob.fs.Rename(u.ctx, bob.cred, tmp.Handle, "hers", tmp.Handle, "his")
		u.want("bob renames in a sticky directory", err, nfs3.ErrPerm, nfs3.ErrAcces)
		_, err = alice.fs.Remove(u.ctx, alice.cred, tmp.Handle, "hers")
		u.must(err)

		team := u.mkdir(u.root, "team", 0o777)
		u.must(u.set(team.Handle, nfs3.SetAttr{GID: ptr(uint32(200)), Mode: ptr(uint32(0o2777))}))
		if o := carol.create(team.Handle, "f", 0o644); o.Attr.GID != 200 || o.Attr.UID != 1003 {
			t.Errorf("in a directory with set-group-id a file has %+v", o.Attr)
		}
		if o := carol.mkdir(team.Handle, "d", 0o755); o.Attr.GID != 200 || o.Attr.Mode != 0o2755 {
			t.Errorf("in a directory with set-group-id a directory has %+v", o.Attr)
		}
		_, _, err = alice.fs.Mknod(u.ctx, alice.cred, u.root, "dev", &nfs3.NodeSpec{Type: nfs3.TypeChar, Major: 1, Minor: 3})
		u.want("alice makes a device", err, nfs3.ErrPerm)
		_, _, err = alice.fs.Create(u.ctx, alice.cred, u.root, "forged", &nfs3.CreateHow{Set: nfs3.SetAttr{UID: ptr(uint32(0))}})
		u.want("alice makes a file of root's", err, nfs3.ErrPerm)
		if _, err := u.fs.Lookup(u.ctx, u.cred, u.root, "forged"); !errors.Is(err, nfs3.ErrNoEnt) && nfs3.StatusOf(err) != nfs3.ErrNoEnt {
			t.Errorf("it is there: %v", err)
		}
	})
}

// TestLargeData checks data that is longer than the pages of a file system.
func TestLargeData(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		f := u.create(u.root, "f", 0o644)
		data := make([]byte, nfs3.MaxData)
		for i := range data {
			data[i] = byte(i * 7 >> 3)
		}
		for _, offset := range []uint64{0, 3, 1<<20 + 65535} {
			w, _, err := u.fs.Write(u.ctx, u.cred, f.Handle, data, offset, nfs3.Unstable)
			got := make([]byte, len(data))
			n, _, readErr := u.fs.Read(u.ctx, u.cred, f.Handle, got, offset)
			if err != nil || readErr != nil || int(w.Count) != len(data) || n != len(data) || !bytes.Equal(got, data) {
				t.Errorf("at %d: %+v, %v, %v", offset, w, err, readErr)
			}
		}
	})
}
