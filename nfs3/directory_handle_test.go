package nfs3_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// reopened returns a user of the same directory as a process has it that was started later. It skips the test if the file system does not know
// when objects were made.
func reopened(t *testing.T, u *user, path string, f nfs3.Handle) (*user, *nfs3.Directory) {
	t.Helper()
	if f[18:26] == nfs3.Handle(strings.Repeat("\x00", 8)) {
		t.Skip("the file system does not know times of birth")
	}
	again, err := nfs3.OpenDirectory(path, nil)
	u.must(err)
	t.Cleanup(func() { again.Close() })
	root, err := again.Root(t.Context())
	u.must(err)
	other := *u
	other.fs, other.root = again, root.Handle
	return &other, again
}

// TestHandlesOutliveTheDirectory checks that handles are valid after a restart, for objects that are where they were, whatever their names are by then, and
// that the objects have the same handles then.
func TestHandlesOutliveTheDirectory(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	top := u.create(u.root, "top", 0o644)
	at := nfs3.Object{Handle: u.root}
	var files, dirs []nfs3.Handle
	for i := range 9 {
		at = u.mkdir(at.Handle, fmt.Sprint("dir", i), 0o755)
		f := u.create(at.Handle, "file", 0o644)
		u.write(f.Handle, 0, fmt.Sprint("data of ", i))
		files, dirs = append(files, f.Handle), append(dirs, at.Handle)
	}
	deep := u.create(u.mkdir(at.Handle, "dir9", 0o755).Handle, "file", 0o644)
	linked := u.create(u.root, "linked", 0o644)
	if _, _, err := u.fs.Link(u.ctx, nil, linked.Handle, dirs[0], "link"); err != nil {
		t.Fatal(err)
	}
	move(t, path+"/dir0/dir1/file", path+"/dir0/dir1/renamed")
	move(t, path+"/dir0/dir1", path+"/dir0/renamed")

	v, _ := reopened(t, u, path, top.Handle)
	if v.root != u.root {
		t.Error("the root has another handle")
	}
	for i := len(files) - 1; i >= 0; i-- {
		if got := v.read(files[i], 0, 99); got != fmt.Sprint("data of ", i) {
			t.Errorf("file %d: %q", i, got)
		}
	}
	v.attr(top.Handle)
	v.attr(linked.Handle)
	if o := v.lookup(dirs[0], "renamed"); o.Handle != dirs[1] {
		t.Error("a directory has another handle")
	}
	if o := v.lookup(dirs[1], "renamed"); o.Handle != files[1] {
		t.Error("a file has another handle")
	}
	v.write(files[3], 0, "more")
	if o := v.lookup(dirs[2], ".."); o.Handle != dirs[1] {
		t.Error("the parent has another handle")
	}
	_, err := v.fs.GetAttr(v.ctx, nil, deep.Handle)
	v.want("what is too deep", err, nfs3.ErrStale)
}

// TestStaleHandlesAfterRestart checks which handles are stale after a restart: of what was removed, also if something has its name or its inode, of what was
// moved to another directory, and of what is behind too many entries. None of them leads out of the root.
func TestStaleHandlesAfterRestart(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	sub := u.mkdir(u.root, "sub", 0o755)
	create := func(name string) nfs3.Handle { return u.create(sub.Handle, name, 0o644).Handle }
	removed, replaced, moved, away, last := create("removed"), create("replaced"), create("moved"), create("away"), create("last")
	u.must(os.Remove(path + "/sub/removed"))
	u.must(os.Remove(path + "/sub/replaced"))
	writeFile(t, path+"/sub/replaced", "another file, perhaps of the same inode")
	move(t, path+"/sub/moved", path+"/moved")
	outside := t.TempDir()
	move(t, path+"/sub/away", outside+"/away")
	u.must(os.Symlink(outside+"/away", path+"/sub/away"))
	for i := range 100 {
		writeFile(t, fmt.Sprintf("%s/sub/more%d", path, i), "")
	}
	v, d := reopened(t, u, path, removed)
	for name, h := range map[string]nfs3.Handle{"removed": removed, "replaced": replaced, "moved": moved, "moved out of the root": away} {
		_, err := v.fs.GetAttr(v.ctx, nil, h)
		v.want(name, err, nfs3.ErrStale)
	}
	d.BoundSearch(1)
	_, err := v.fs.GetAttr(v.ctx, nil, last)
	v.want("behind too many entries", err, nfs3.ErrStale)
	d.BoundSearch(1000)
	v.attr(last)
	if moved != v.lookup(v.root, "moved").Handle { // found by its identity from now on, under the handle that it has there
		v.attr(moved)
	}

	// A directory above is another one by now, of the same name, or a symbolic link.
	u.must(os.Rename(path+"/sub", outside+"/sub"))
	u.must(os.Symlink(outside+"/sub", path+"/sub"))
	w, _ := reopened(t, u, path, removed)
	for name, h := range map[string]nfs3.Handle{"below what was moved out": last, "what was moved out": sub.Handle} {
		_, err := w.fs.GetAttr(w.ctx, nil, h)
		w.want(name, err, nfs3.ErrStale)
	}
}

// TestInventedHandles checks that handles that a client has made, of any length and content, are errors, and lead to no more than to objects below the root.
func TestInventedHandles(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	f := u.create(u.mkdir(u.root, "sub", 0o755).Handle, "file", 0o644)
	outside := t.TempDir()
	writeFile(t, outside+"/secret", "secret")
	o, err := nfs3.OpenDirectory(outside, nil)
	u.must(err)
	defer o.Close()
	root, err := o.Root(t.Context())
	u.must(err)
	secret, err := o.Lookup(t.Context(), nil, root.Handle, "secret")
	u.must(err)
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
		_, err := v.fs.GetAttr(v.ctx, nil, h)
		v.want(fmt.Sprintf("handle %v", h), err, nfs3.ErrBadHandle, nfs3.ErrStale)
	}
	v.attr(f.Handle)
}

// TestFileOutlivesTheServer checks that a File that is being written when its server ends, with the process, goes on with the next one, and writes what was not
// committed again.
func TestFileOutlivesTheServer(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	probe := u.create(u.root, "probe", 0o644)
	reopened(t, u, path, probe.Handle)
	address := "127.0.0.1:0"
	serve := func() (end func()) {
		d, err := nfs3.OpenDirectory(path, nil)
		u.must(err)
		l, err := net.Listen("tcp", address)
		u.must(err)
		address = l.Addr().String()
		s := rpc.NewServer(nil)
		nfs3.NewServer(d, &nfs3.ServerOptions{Squash: nfs3.SquashNone}).Register(s)
		go s.ServeTCP(l)
		return func() { s.Close(); d.Close() }
	}
	end := serve()
	c := dial(t, "tcp:"+address, "/")
	v, err := nfs3.NewVolume(t.Context(), c, u.cred)
	u.must(err)
	f, err := v.CreateNew("file", 0o644)
	u.must(err)
	data := bytes.Repeat([]byte("0123456789"), 100000)
	for at := 0; at < len(data); at += 250000 {
		_, err = f.Write(data[at:][:250000])
		u.must(err)
		end()
		end = serve()
	}
	defer end()
	u.must(f.Close())
	if got, err := os.ReadFile(path + "/file"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d octets, %v", len(got), err)
	}
}
