package nfs3_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
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
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		file := u.Create(u.Root, "file", 0o644)
		calls := map[string]func(name string) error{
			"lookup": func(name string) error { _, err := u.FS.Lookup(u.Ctx, u.Cred, u.Root, name); return err },
			"guarded": func(name string) error {
				_, _, err := u.FS.Create(u.Ctx, u.Cred, u.Root, name, &nfs3.CreateHow{Mode: nfs3.Guarded})
				return err
			},
			"unchecked": func(name string) error {
				_, _, err := u.FS.Create(u.Ctx, u.Cred, u.Root, name, &nfs3.CreateHow{})
				return err
			},
			"exclusive": func(name string) error {
				_, _, err := u.FS.Create(u.Ctx, u.Cred, u.Root, name, &nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 7})
				return err
			},
			"mkdir": func(name string) error {
				_, _, err := u.FS.Mkdir(u.Ctx, u.Cred, u.Root, name, &nfs3.SetAttr{})
				return err
			},
			"symlink": func(name string) error {
				_, _, err := u.FS.Symlink(u.Ctx, u.Cred, u.Root, name, "x", &nfs3.SetAttr{})
				return err
			},
			"mknod": func(name string) error {
				_, _, err := u.FS.Mknod(u.Ctx, u.Cred, u.Root, name, &nfs3.NodeSpec{Type: nfs3.TypeFIFO})
				return err
			},
			"remove": func(name string) error { _, err := u.FS.Remove(u.Ctx, u.Cred, u.Root, name); return err },
			"rmdir":  func(name string) error { _, err := u.FS.Rmdir(u.Ctx, u.Cred, u.Root, name); return err },
			"rename": func(name string) error {
				_, _, err := u.FS.Rename(u.Ctx, u.Cred, u.Root, name, u.Root, "to")
				return err
			},
			"rename to": func(name string) error {
				_, _, err := u.FS.Rename(u.Ctx, u.Cred, u.Root, "file", u.Root, name)
				return err
			},
			"link": func(name string) error { _, _, err := u.FS.Link(u.Ctx, u.Cred, file.Handle, u.Root, name); return err },
		}
		for call, f := range calls {
			for name, want := range hostile {
				u.Want(fmt.Sprintf("%s %.20q", call, name), f(name), want...)
			}
			for _, name := range []string{".", ".."} {
				if err := f(name); call != "lookup" && nfs3.StatusOf(err) != nfs3.ErrInval && nfs3.StatusOf(err) != nfs3.ErrExist {
					t.Errorf("%s %q: %v", call, name, err)
				}
			}
		}
		if got := names(u.List(u.Root, false, 9)); !slices.Equal(got, []string{".", "..", "file"}) {
			t.Errorf("afterwards there are %q", got)
		}
		for _, name := range []string{"ä", "\xff\xfe", "with space", "-", "...", strings.Repeat("n", 255)} {
			u.Create(u.Root, name, 0o600)
			u.Lookup(u.Root, name)
		}
		if o := u.Lookup(u.Root, ".."); o.Handle != u.Root {
			t.Error("the root's parent is not the root")
		}
	})
}

// TestHandles checks that what is no handle of the file system is an error, and which.
func TestHandles(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		file := u.Create(u.Root, "file", 0o644)
		other := kinds["memory"](t)
		foreign, _ := other.Root(u.Ctx)
		for _, h := range []nfs3.Handle{"", "x", nfs3.Handle(strings.Repeat("h", 64)), file.Handle + "x", file.Handle[:15]} {
			_, err := u.FS.GetAttr(u.Ctx, u.Cred, h)
			u.Want(fmt.Sprint("handle ", h), err, nfs3.ErrBadHandle, nfs3.ErrStale)
		}
		_, err := u.FS.GetAttr(u.Ctx, u.Cred, foreign.Handle)
		u.Want("a handle of another file system", err, nfs3.ErrBadHandle, nfs3.ErrStale)
		_, err = u.FS.Remove(u.Ctx, u.Cred, u.Root, "file")
		u.Must(err)
		_, err = u.FS.GetAttr(u.Ctx, u.Cred, file.Handle)
		u.Want("a handle of what was removed", err, nfs3.ErrStale)
		again := u.Create(u.Root, "file", 0o644)
		if _, err = u.FS.GetAttr(u.Ctx, u.Cred, file.Handle); nfs3.StatusOf(err) != nfs3.ErrStale && again.Handle != file.Handle {
			t.Errorf("the handle of a former file of that name: %v", err)
		}
	})
}

// TestDirectories checks entries of directories: all of them, once, however many are asked for at a
// time, while others come and go.
func TestDirectories(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		d := u.Mkdir(u.Root, "d", 0o755)
		if d.Attr.Type != nfs3.TypeDirectory || d.Attr.Mode != 0o755 {
			t.Errorf("%+v", d.Attr)
		}
		want := []string{".", ".."}
		for i := range 300 {
			name := fmt.Sprintf("entry %d%s", i, strings.Repeat("x", i%200))
			u.Create(d.Handle, name, 0o644)
			want = append(want, name)
		}
		slices.Sort(want)
		for _, at := range []int{1, 7, 300, 1000} {
			for _, plus := range []bool{false, true} {
				entries := u.List(d.Handle, plus, at)
				if got := names(entries); !slices.Equal(got, want) {
					t.Errorf("%d at a time: %d entries, want %d", at, len(got), len(want))
				}
				for _, e := range entries {
					if e.Name == ".." {
						continue
					}
					o := u.Lookup(d.Handle, e.Name)
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
			end, err := u.FS.ReadDir(u.Ctx, u.Cred, d.Handle, from, false, func(e *nfs3.DirEntry) bool {
				if from.Cookie == e.Cookie || seen[e.Name] {
					t.Errorf("%q comes twice", e.Name)
				}
				from.Cookie = e.Cookie
				seen[e.Name] = true
				return len(seen)%10 != 0
			})
			u.Must(err)
			if from.Verifier = end.Verifier; end.EOF || n > 1000 {
				break
			}
		}
		if len(seen) != len(want) {
			t.Errorf("%d entries, want %d", len(seen), len(want))
		}
		_, err := u.FS.Rmdir(u.Ctx, u.Cred, u.Root, "d")
		u.Want("rmdir of a full one", err, nfs3.ErrNotEmpty)
		_, err = u.FS.Remove(u.Ctx, u.Cred, u.Root, "d")
		u.Want("remove of a directory", err, nfs3.ErrIsDir, nfs3.ErrPerm)
		for _, name := range want[2:] {
			_, err := u.FS.Remove(u.Ctx, u.Cred, d.Handle, name)
			u.Must(err)
		}
		links := u.GetAttr(u.Root).Links
		w, err := u.FS.Rmdir(u.Ctx, u.Cred, u.Root, "d")
		u.Must(err)
		if !w.Before.Present || !w.After.Present || w.Before.Mtime == w.After.Attr.Mtime && w.Before.Ctime == w.After.Attr.Ctime {
			t.Logf("coarse times: %+v", w) // a file system below may tell 4 ms at least
		}
		if now := u.GetAttr(u.Root).Links; now != links-1 && now != links {
			t.Errorf("%d links, were %d", now, links)
		}
		_, err = u.FS.ReadDir(u.Ctx, u.Cred, d.Handle, nfs3.DirPosition{}, false, func(*nfs3.DirEntry) bool { return true })
		u.Want("readdir of what was removed", err, nfs3.ErrStale)
		f := u.Create(u.Root, "f", 0o644)
		_, err = u.FS.ReadDir(u.Ctx, u.Cred, f.Handle, nfs3.DirPosition{}, false, func(*nfs3.DirEntry) bool { return true })
		u.Want("readdir of a file", err, nfs3.ErrNotDir)
		_, err = u.FS.Lookup(u.Ctx, u.Cred, f.Handle, "x")
		u.Want("lookup in a file", err, nfs3.ErrNotDir)
		_, err = u.FS.Rmdir(u.Ctx, u.Cred, u.Root, "f")
		u.Want("rmdir of a file", err, nfs3.ErrNotDir)
		_, err = u.FS.Lookup(u.Ctx, u.Cred, u.Root, "none")
		u.Want("lookup of what is not there", err, nfs3.ErrNoEnt)
		_, err = u.FS.Remove(u.Ctx, u.Cred, u.Root, "none")
		u.Want("remove of what is not there", err, nfs3.ErrNoEnt)
	})
}

// TestRename checks that handles stay valid over a rename, also those of what is below a directory,
// and what may replace what.
func TestRename(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		a, b := u.Mkdir(u.Root, "a", 0o755), u.Mkdir(u.Root, "b", 0o755)
		sub := u.Mkdir(a.Handle, "sub", 0o755)
		f := u.Create(sub.Handle, "f", 0o644)
		u.Write(f.Handle, 0, "data")
		rename := func(from nfs3.Object, name string, to nfs3.Object, newName string) error {
			_, _, err := u.FS.Rename(u.Ctx, u.Cred, from.Handle, name, to.Handle, newName)
			return err
		}
		u.Must(rename(a, "sub", b, "moved"))
		if got := u.Read(f.Handle, 0, 9); got != "data" {
			t.Errorf("%q", got)
		}
		if o := u.Lookup(b.Handle, "moved"); o.Handle != sub.Handle {
			t.Error("the directory has another handle after it was moved")
		}
		if o := u.Lookup(sub.Handle, ".."); o.Handle != b.Handle {
			t.Error(".. of what was moved is not the new parent")
		}
		u.Want("into itself", rename(b, "moved", sub, "x"), nfs3.ErrInval)
		u.Want("what is not there", rename(a, "none", b, "x"), nfs3.ErrNoEnt)
		g := u.Create(a.Handle, "g", 0o600)
		u.Must(rename(a, "g", sub, "f")) // replaces f
		if o := u.Lookup(sub.Handle, "f"); o.Handle != g.Handle {
			t.Error("the file that was replaced is still there")
		}
		_, err := u.FS.GetAttr(u.Ctx, u.Cred, f.Handle)
		u.Want("the file that was replaced", err, nfs3.ErrStale)
		u.Mkdir(a.Handle, "empty", 0o755)
		u.Want("a file over a directory", rename(sub, "f", a, "empty"), nfs3.ErrIsDir, nfs3.ErrExist)
		u.Want("a directory over a file", rename(a, "empty", sub, "f"), nfs3.ErrNotDir, nfs3.ErrExist)
		u.Want("over a directory that is not empty", rename(a, "empty", b, "moved"), nfs3.ErrNotEmpty, nfs3.ErrExist)
		u.Must(rename(b, "moved", a, "empty"))
		if got := names(u.List(a.Handle, false, 5)); !slices.Equal(got, []string{".", "..", "empty"}) {
			t.Errorf("%q", got)
		}
		u.Must(rename(a, "empty", a, "empty")) // the same
		h := u.Create(u.Root, "h", 0o600)
		_, _, err = u.FS.Link(u.Ctx, u.Cred, h.Handle, u.Root, "h2")
		u.Must(err)
		root := nfs3.Object{Handle: u.Root}
		u.Must(rename(root, "h", root, "h2")) // two names of one file: nothing happens
		u.Lookup(u.Root, "h")
		u.Lookup(u.Root, "h2")
	})
}

// TestLinks checks hard and symbolic links.
func TestLinks(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		f := u.Create(u.Root, "f", 0o644)
		after, _, err := u.FS.Link(u.Ctx, u.Cred, f.Handle, u.Root, "g")
		u.Must(err)
		g := u.Lookup(u.Root, "g")
		if !after.Present || after.Attr.Links != 2 || g.Handle != f.Handle || g.Attr.FileID != f.Attr.FileID {
			t.Errorf("%+v, %+v", after, g)
		}
		_, _, err = u.FS.Link(u.Ctx, u.Cred, f.Handle, u.Root, "g")
		u.Want("link over what is there", err, nfs3.ErrExist)
		_, err = u.FS.Remove(u.Ctx, u.Cred, u.Root, "f")
		u.Must(err)
		u.Write(g.Handle, 0, "still there")
		if a := u.GetAttr(g.Handle); a.Links != 1 {
			t.Errorf("%d links", a.Links)
		}
		d := u.Mkdir(u.Root, "d", 0o755)
		_, _, err = u.FS.Link(u.Ctx, u.Cred, g.Handle, d.Handle, "h")
		u.Must(err)
		u.Lookup(d.Handle, "h")
		_, err = u.FS.Remove(u.Ctx, u.Cred, d.Handle, "h")
		u.Must(err)
		if got := u.Read(g.Handle, 0, 99); got != "still there" {
			t.Errorf("%q", got)
		}
		_, _, err = u.FS.Link(u.Ctx, u.Cred, d.Handle, u.Root, "d2")
		u.Want("link of a directory", err, nfs3.ErrIsDir, nfs3.ErrPerm)
		for name, target := range map[string]string{"s": "g", "up": "../../etc/passwd", "long": strings.Repeat("t", 4095), "odd": "\xff\xfe"} {
			s, _, err := u.FS.Symlink(u.Ctx, u.Cred, u.Root, name, target, &nfs3.SetAttr{})
			u.Must(err)
			got, err := u.FS.ReadLink(u.Ctx, u.Cred, s.Handle)
			if err != nil || got != target || s.Attr.Type != nfs3.TypeSymlink || s.Attr.Size != uint64(len(target)) {
				t.Errorf("%q, %+v, %v", got, s, err)
			}
			if o := u.Lookup(u.Root, name); o.Attr.Type != nfs3.TypeSymlink {
				t.Error("lookup has followed a link")
			}
			_, _, err = u.FS.Read(u.Ctx, u.Cred, s.Handle, make([]byte, 9), 0)
			u.Want("read of a link", err, nfs3.ErrInval)
			_, err = u.FS.Lookup(u.Ctx, u.Cred, s.Handle, "x")
			u.Want("lookup in a link", err, nfs3.ErrNotDir)
			_, _, err = u.FS.Create(u.Ctx, u.Cred, u.Root, name, &nfs3.CreateHow{})
			u.Want("create over a link", err, nfs3.ErrExist)
		}
		_, err = u.FS.ReadLink(u.Ctx, u.Cred, g.Handle)
		u.Want("readlink of a file", err, nfs3.ErrInval)
		fifo, _, err := u.FS.Mknod(u.Ctx, u.Cred, u.Root, "fifo", &nfs3.NodeSpec{Type: nfs3.TypeFIFO, Set: nfs3test.Mode(0o600)})
		u.Must(err)
		if fifo.Attr.Type != nfs3.TypeFIFO || fifo.Attr.Mode != 0o600 {
			t.Errorf("%+v", fifo.Attr)
		}
		_, _, err = u.FS.Read(u.Ctx, u.Cred, fifo.Handle, make([]byte, 9), 0)
		u.Want("read of a FIFO", err, nfs3.ErrInval)
		_, _, err = u.FS.Mknod(u.Ctx, u.Cred, u.Root, "dir", &nfs3.NodeSpec{Type: nfs3.TypeDirectory})
		u.Want("mknod of a directory", err, nfs3.ErrBadType)
	})
}
