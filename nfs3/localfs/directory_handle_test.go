package localfs_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/rpc"
)

// reopened returns a user of the same directory as a process has it that was started later. It skips the test if the file system does not know
// when objects were made.
func reopened(t *testing.T, u *nfs3test.User, path string, f nfs3.Handle) (*nfs3test.User, *localfs.Directory) {
	t.Helper()
	if f[18:26] == nfs3.Handle(strings.Repeat("\x00", 8)) {
		t.Skip("the file system does not know times of birth")
	}
	again, err := localfs.OpenDirectory(path, nil)
	u.Must(err)
	t.Cleanup(func() { again.Close() })
	return nfs3test.NewUser(t, again, u.Cred), again
}

// TestHandlesOutliveTheDirectory checks that handles are valid after a restart, for objects that are where they were, whatever their names are by then, and
// that the objects have the same handles then.
func TestHandlesOutliveTheDirectory(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	top := u.Create(u.Root, "top", 0o644)
	at := nfs3.Object{Handle: u.Root}
	var files, dirs []nfs3.Handle
	for i := range 9 {
		at = u.Mkdir(at.Handle, fmt.Sprint("dir", i), 0o755)
		f := u.Create(at.Handle, "file", 0o644)
		u.Write(f.Handle, 0, fmt.Sprint("data of ", i))
		files, dirs = append(files, f.Handle), append(dirs, at.Handle)
	}
	deep := u.Create(u.Mkdir(at.Handle, "dir9", 0o755).Handle, "file", 0o644)
	linked := u.Create(u.Root, "linked", 0o644)
	if _, _, err := u.FS.Link(u.Ctx, nil, linked.Handle, dirs[0], "link"); err != nil {
		t.Fatal(err)
	}
	move(t, path+"/dir0/dir1/file", path+"/dir0/dir1/renamed")
	move(t, path+"/dir0/dir1", path+"/dir0/renamed")

	v, _ := reopened(t, u, path, top.Handle)
	if v.Root != u.Root {
		t.Error("the root has another handle")
	}
	for i := len(files) - 1; i >= 0; i-- {
		if got := v.Read(files[i], 0, 99); got != fmt.Sprint("data of ", i) {
			t.Errorf("file %d: %q", i, got)
		}
	}
	v.GetAttr(top.Handle)
	v.GetAttr(linked.Handle)
	if o := v.Lookup(dirs[0], "renamed"); o.Handle != dirs[1] {
		t.Error("a directory has another handle")
	}
	if o := v.Lookup(dirs[1], "renamed"); o.Handle != files[1] {
		t.Error("a file has another handle")
	}
	v.Write(files[3], 0, "more")
	if o := v.Lookup(dirs[2], ".."); o.Handle != dirs[1] {
		t.Error("the parent has another handle")
	}
	_, err := v.FS.GetAttr(v.Ctx, nil, deep.Handle)
	v.Want("what is too deep", err, nfs3.ErrStale)
}

// TestStaleHandlesAfterRestart checks which handles are stale after a restart: of what was removed, also if something has its name or its inode, of what was
// moved to another directory, and of what is behind too many entries. None of them leads out of the root.
func TestStaleHandlesAfterRestart(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	sub := u.Mkdir(u.Root, "sub", 0o755)
	create := func(name string) nfs3.Handle { return u.Create(sub.Handle, name, 0o644).Handle }
	removed, replaced, moved, away, last := create("removed"), create("replaced"), create("moved"), create("away"), create("last")
	u.Must(os.Remove(path + "/sub/removed"))
	u.Must(os.Remove(path + "/sub/replaced"))
	writeFile(t, path+"/sub/replaced", "another file, perhaps of the same inode")
	move(t, path+"/sub/moved", path+"/moved")
	outside := t.TempDir()
	move(t, path+"/sub/away", outside+"/away")
	u.Must(os.Symlink(outside+"/away", path+"/sub/away"))
	for i := range 100 {
		writeFile(t, fmt.Sprintf("%s/sub/more%d", path, i), "")
	}
	v, d := reopened(t, u, path, removed)
	for name, h := range map[string]nfs3.Handle{"removed": removed, "replaced": replaced, "moved": moved, "moved out of the root": away} {
		_, err := v.FS.GetAttr(v.Ctx, nil, h)
		v.Want(name, err, nfs3.ErrStale)
	}
	d.BoundSearch(1)
	_, err := v.FS.GetAttr(v.Ctx, nil, last)
	v.Want("behind too many entries", err, nfs3.ErrStale)
	d.BoundSearch(1000)
	v.GetAttr(last)
	if moved != v.Lookup(v.Root, "moved").Handle { // found by its identity from now on, under the handle that it has there
		v.GetAttr(moved)
	}

	// A directory above is another one by now, of the same name, or a symbolic link.
	u.Must(os.Rename(path+"/sub", outside+"/sub"))
	u.Must(os.Symlink(outside+"/sub", path+"/sub"))
	w, _ := reopened(t, u, path, removed)
	for name, h := range map[string]nfs3.Handle{"below what was moved out": last, "what was moved out": sub.Handle} {
		_, err := w.FS.GetAttr(w.Ctx, nil, h)
		w.Want(name, err, nfs3.ErrStale)
	}
}

// TestInventedHandles checks that handles that a client has made, of any length and content, are errors, and lead to no more than to objects below the root.
func TestInventedHandles(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	f := u.Create(u.Mkdir(u.Root, "sub", 0o755).Handle, "file", 0o644)
	outside := t.TempDir()
	writeFile(t, outside+"/secret", "secret")
	o, err := localfs.OpenDirectory(outside, nil)
	u.Must(err)
	defer o.Close()
	root, err := o.Root(t.Context())
	u.Must(err)
	secret, err := o.Lookup(t.Context(), nil, root.Handle, "secret")
	u.Must(err)
	v, _ := reopened(t, u, path, f.Handle)
	invented := []nfs3.Handle{"", secret.Handle, root.Handle, f.Handle[:25], f.Handle + "x", f.Handle[:len(f.Handle)-1], f.Handle + "1234"}
	for i := range f.Handle {
		b := []byte(f.Handle)
		b[i]++
		invented = append(invented, nfs3.Handle(b))
	}
	for n := range nfs3.MaxHandle + 1 {
		invented = append(invented, nfs3.Handle(strings.Repeat("\x01", n)), nfs3.Handle("\x01\xff"+strings.Repeat("\x00", n)))
	}
	for _, h := range invented {
		_, err := v.FS.GetAttr(v.Ctx, nil, h)
		v.Want(fmt.Sprintf("handle %v", h), err, nfs3.ErrBadHandle, nfs3.ErrStale)
	}
	v.GetAttr(f.Handle)
}

// TestFileOutlivesTheServer checks that a File that is being written when its server ends, with the process, goes on with the next one, and writes what was not
// committed again.
func TestFileOutlivesTheServer(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	probe := u.Create(u.Root, "probe", 0o644)
	reopened(t, u, path, probe.Handle)
	address := "127.0.0.1:0"
	serve := func() (end func()) {
		d, err := localfs.OpenDirectory(path, nil)
		u.Must(err)
		l, err := net.Listen("tcp", address)
		u.Must(err)
		address = l.Addr().String()
		s := rpc.NewServer(nil)
		nfs3.NewServer(d, &nfs3.ServerOptions{Squash: nfs3.SquashNone}).Register(s)
		go s.ServeTCP(l)
		return func() { s.Close(); d.Close() }
	}
	end := serve()
	c, err := nfs3.Dial(t.Context(), "tcp:"+address, "/", nil)
	u.Must(err)
	defer c.Close()
	v, err := nfs3.NewVolume(t.Context(), c, u.Cred)
	u.Must(err)
	f, err := v.CreateNew("file", 0o644)
	u.Must(err)
	data := bytes.Repeat([]byte("0123456789"), 100000)
	for at := 0; at < len(data); at += 250000 {
		_, err = f.Write(data[at:][:250000])
		u.Must(err)
		end()
		end = serve()
	}
	defer end()
	u.Must(f.Close())
	if got, err := os.ReadFile(path + "/file"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d octets, %v", len(got), err)
	}
}

// TestSearchesDelayNoOthers checks that clients with handles of nothing, for which large directories are searched, do not delay a rename, nor what
// comes after it; and that of too many of them at once the others are told to ask again (P21).
func TestSearchesDelayNoOthers(t *testing.T) {
	u, d, _ := directoryUser(t, nil)
	a := u.Mkdir(u.Root, "a", 0o755)
	f := u.Create(a.Handle, "f", 0o644)
	reopened(t, u, t.TempDir(), f.Handle)
	bogus := []byte(f.Handle)
	bogus[13] ^= 0x55 // the inode
	hold := d.HoldSearches()
	const all = 200
	results := make(chan error, all)
	for range all {
		go func() {
			_, err := u.FS.GetAttr(u.Ctx, nil, nfs3.Handle(bogus))
			results <- err
		}()
	}
	for range all - localfs.MostSearches {
		u.Want("one too many", <-results, nfs3.ErrJukebox)
	}
	_, _, err := u.FS.Rename(u.Ctx, nil, u.Root, "a", u.Root, "b")
	u.Must(err)
	u.GetAttr(f.Handle)
	hold()
	for range localfs.MostSearches {
		u.Want("the others", <-results, nfs3.ErrStale)
	}
	_, err = u.FS.GetAttr(u.Ctx, nil, nfs3.Handle(bogus))
	u.Want("afterwards", err, nfs3.ErrStale)
}
