package nfs3_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

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
		u.want("a handle of another file system", err, nfs3.ErrBadHandle, nfs3.ErrStale)
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
		// What is removed after the position does not matter for the rest.
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
