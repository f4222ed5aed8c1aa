package nfs3_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
)

// directoryUser returns a caller of a directory, and its path.
func directoryUser(t *testing.T, o *nfs3.DirectoryOptions) (*user, *nfs3.Directory, string) {
	path := t.TempDir()
	d, err := nfs3.OpenDirectory(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	root, err := d.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &user{t, t.Context(), d, nil, root.Handle}, d, path
}

func writeFile(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestDirectoryIsNotLeft checks that nothing outside of a directory is read, written, listed or made,
// while others exchange its directories and files for symbolic links and back.
func TestDirectoryIsNotLeft(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "f"), "outside")
	inside := filepath.Join(path, "d")
	if err := os.Mkdir(inside, 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(inside, "f"), "in here")
	writeFile(t, filepath.Join(path, "g"), "in here")
	d, g := u.lookup(u.root, "d"), u.lookup(u.root, "g")
	f := u.lookup(d.Handle, "f")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swap := func(name, target string) {
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(name, name+".away")
			os.Symlink(target, name)
			os.Remove(name)
			os.Rename(name+".away", name)
		}
	}
	swapping.Go(func() { swap(inside, outside) })
	swapping.Go(func() { swap(filepath.Join(path, "g"), filepath.Join(outside, "f")) })
	b := make([]byte, 100)
	reads := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		for _, h := range []nfs3.Handle{f.Handle, g.Handle, d.Handle} {
			if n, _, err := u.fs.Read(u.ctx, nil, h, b, 0); err == nil {
				reads++
				if got := string(b[:n]); got != "in here" {
					t.Fatalf("read %q", got)
				}
			}
		}
		for _, h := range []nfs3.Handle{f.Handle, g.Handle} {
			u.fs.Write(u.ctx, nil, h, []byte("in here"), 0, nfs3.Unstable)
			u.fs.SetAttr(u.ctx, nil, h, &nfs3.SetAttr{Mode: ptr(uint32(0o600))}, nil)
		}
		u.fs.Create(u.ctx, nil, u.root, "g", &nfs3.CreateHow{Set: nfs3.SetAttr{Size: ptr(uint64(7))}})
		u.fs.Lookup(u.ctx, nil, u.root, "g")
		u.fs.Create(u.ctx, nil, d.Handle, "new", &nfs3.CreateHow{})
		u.fs.Mkdir(u.ctx, nil, d.Handle, "newdir", &nfs3.SetAttr{})
		u.fs.Rename(u.ctx, nil, d.Handle, "new", d.Handle, "newer")
		u.fs.Remove(u.ctx, nil, d.Handle, "newer")
		u.fs.Lookup(u.ctx, nil, u.root, "d")
		u.fs.ReadDir(u.ctx, nil, d.Handle, nfs3.DirPosition{}, true, func(e *nfs3.DirEntry) bool { return true })
	}
	close(stop)
	swapping.Wait()
	entries, err := os.ReadDir(outside)
	data, _ := os.ReadFile(filepath.Join(outside, "f"))
	info, _ := os.Stat(filepath.Join(outside, "f"))
	if err != nil || len(entries) != 1 || string(data) != "outside" || info.Mode() != 0o644 {
		t.Errorf("outside there are %v, %q, %v", entries, data, info.Mode())
	}
	t.Logf("%d reads", reads)
}

// TestDirectoryFollowsNoLinks checks that links which lead outside, or are absolute, are objects like
// others.
func TestDirectoryFollowsNoLinks(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(path, "s")); err != nil {
		t.Fatal(err)
	}
	s := u.lookup(u.root, "s")
	_, _, err := u.fs.Create(u.ctx, nil, s.Handle, "x", &nfs3.CreateHow{})
	u.want("create in a link", err, nfs3.ErrNotDir)
	_, _, err = u.fs.Create(u.ctx, nil, u.root, "s", &nfs3.CreateHow{Set: nfs3.SetAttr{Size: ptr(uint64(0))}})
	u.want("create over a link", err, nfs3.ErrExist)
	u.must(u.set(s.Handle, nfs3.SetAttr{SetMtime: nfs3.ClientTime, Mtime: nfs3.Time{Seconds: 99}}))
	if info, err := os.Stat(outside); err != nil || info.ModTime().Unix() == 99 {
		t.Errorf("%v, %v", info.ModTime(), err)
	}
	if a := u.attr(s.Handle); a.Mtime.Seconds != 99 {
		t.Errorf("the link has %+v", a)
	}
	u.set(s.Handle, mode(0o000))
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() == 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestDirectoryRenamedByOthers checks that a handle is stale once others have renamed what it stands
// for, or what is above it, and is valid again when that was looked up.
func TestDirectoryRenamedByOthers(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	a := u.mkdir(u.root, "a", 0o755)
	sub := u.mkdir(a.Handle, "sub", 0o755)
	f := u.create(sub.Handle, "f", 0o644)
	u.write(f.Handle, 0, "data")
	move(t, path+"/a", path+"/b")
	_, err := u.fs.GetAttr(u.ctx, nil, f.Handle)
	u.want("below what was renamed", err, nfs3.ErrStale)
	if b := u.lookup(u.root, "b"); b.Handle != a.Handle {
		t.Error("the directory has another handle")
	}
	if got := u.read(f.Handle, 0, 9); got != "data" {
		t.Errorf("%q", got)
	}
	// The parent becomes the child.
	move(t, path+"/b/sub", path+"/sub")
	move(t, path+"/b", path+"/sub/b")
	_, err = u.fs.GetAttr(u.ctx, nil, sub.Handle)
	u.want("what was moved up", err, nfs3.ErrStale)
	if o := u.lookup(u.root, "sub"); o.Handle != sub.Handle {
		t.Error("the directory has another handle")
	}
	if o := u.lookup(sub.Handle, "b"); o.Handle != a.Handle {
		t.Error("the directory has another handle")
	}
	if got := u.read(f.Handle, 0, 9); got != "data" {
		t.Errorf("%q", got)
	}
	// Another file under the same name.
	writeFile(t, path+"/new", "other")
	move(t, path+"/new", path+"/sub/f")
	_, err = u.fs.GetAttr(u.ctx, nil, f.Handle)
	u.want("what was replaced", err, nfs3.ErrStale)
	if err := os.RemoveAll(path + "/sub"); err != nil {
		t.Fatal(err)
	}
	_, err = u.fs.Lookup(u.ctx, nil, sub.Handle, "f")
	u.want("what was removed", err, nfs3.ErrStale)
}

// TestDirectoryChangesBelow checks that a file that others cut, fill and remove while it is read is short
// reads and errors, and zeros or what they wrote.
func TestDirectoryChangesBelow(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	f := u.create(u.root, "f", 0o644)
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		data := bytes.Repeat([]byte{7}, 1<<20)
		for {
			select {
			case <-stop:
				return
			default:
				os.WriteFile(path+"/f", data, 0o644) // truncates first
				os.Truncate(path+"/f", 1<<19)
			}
		}
	})
	b := make([]byte, 1<<20)
	for range 200 {
		n, _, err := u.fs.Read(u.ctx, nil, f.Handle, b, 0)
		if err != nil {
			t.Error(err)
		}
		if i := bytes.IndexFunc(b[:n], func(r rune) bool { return r != 7 && r != 0 }); i >= 0 {
			t.Errorf("octet %d is %d", i, b[i])
		}
	}
	close(stop)
	changing.Wait()
}

// TestPlacesAreBounded checks that of too many objects the ones that were not used for longest are
// forgotten, never a directory that is above others, and are found again by their handles, or if these are too deep, when they are looked up.
func TestPlacesAreBounded(t *testing.T) {
	u, d, _ := directoryUser(t, nil)
	d.BoundPlaces(50)
	deep := nfs3.Object{Handle: u.root}
	for i := range 10 {
		deep = u.mkdir(deep.Handle, fmt.Sprint("d", i), 0o755)
	}
	f := u.create(deep.Handle, "f", 0o644)
	first := u.create(u.root, "first", 0o644)
	for i := range 200 {
		u.create(u.root, fmt.Sprint(i), 0o644)
		if i%10 == 0 {
			u.attr(f.Handle)
		}
	}
	if n := d.Places(); n > 50 {
		t.Errorf("%d places", n)
	}
	u.attr(first.Handle)
	for i := range 200 {
		u.attr(u.lookup(u.root, fmt.Sprint(i)).Handle)
	}
	_, err := u.fs.GetAttr(u.ctx, nil, f.Handle)
	u.want("the deep one", err, nfs3.ErrStale)
	deep = nfs3.Object{Handle: u.root}
	for i := range 10 {
		deep = u.lookup(deep.Handle, fmt.Sprint("d", i))
	}
	u.attr(u.lookup(deep.Handle, "f").Handle)
	if got := len(u.list(u.root, true, 1000)); got != 204 || d.Places() > 50 {
		t.Errorf("%d entries, %d places", got, d.Places())
	}
}

// TestDirectoryLeavesNothingOpen checks that file descriptors are closed, also where something fails.
func TestDirectoryLeavesNothingOpen(t *testing.T) {
	u, _, path := directoryUser(t, &nfs3.DirectoryOptions{SyncMetadata: true})
	open := func() (n int) {
		entries, err := os.ReadDir("/proc/self/fd")
		u.must(err)
		for _, e := range entries { // other tests have some of their own
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, path) {
				n++
			}
		}
		return n
	}
	before := open()
	a := u.mkdir(u.root, "a", 0o755)
	f := u.create(a.Handle, "f", 0o644)
	for range 20 {
		u.write(f.Handle, 0, "x")
		u.read(f.Handle, 0, 1)
		u.fs.Commit(u.ctx, nil, f.Handle, 0, 0)
		u.fs.Commit(u.ctx, nil, a.Handle, 0, 0)
		u.fs.Read(u.ctx, nil, a.Handle, nil, 0)
		u.fs.Write(u.ctx, nil, a.Handle, nil, 0, nfs3.FileSync)
		u.fs.Create(u.ctx, nil, f.Handle, "x", &nfs3.CreateHow{})
		u.fs.Create(u.ctx, nil, a.Handle, "f", &nfs3.CreateHow{Mode: nfs3.Exclusive})
		u.fs.Lookup(u.ctx, nil, a.Handle, "..")
		u.fs.Lookup(u.ctx, nil, a.Handle, "none")
		u.fs.Lookup(u.ctx, nil, f.Handle, "none")
		u.fs.Rename(u.ctx, nil, a.Handle, "none", f.Handle, "none")
		u.fs.Rename(u.ctx, nil, a.Handle, "f", u.root, "f")
		u.fs.Rename(u.ctx, nil, u.root, "f", a.Handle, "f")
		u.fs.Link(u.ctx, nil, f.Handle, f.Handle, "x")
		u.fs.Symlink(u.ctx, nil, a.Handle, "f", "x", &nfs3.SetAttr{})
		u.fs.FSStat(u.ctx, nil, f.Handle)
		u.fs.ReadLink(u.ctx, nil, f.Handle)
		u.list(a.Handle, true, 1)
		u.set(f.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o600)), Size: ptr(uint64(9)), SetMtime: nfs3.ServerTime})
	}
	if after := open(); after != before || before != 1 {
		t.Errorf("%d file descriptors are open, %d were", after, before)
	}
}

// TestOpenDirectoryFails checks that a directory that is not there is an error that names it.
func TestOpenDirectoryFails(t *testing.T) {
	_, _, path := directoryUser(t, nil)
	if _, err := nfs3.OpenDirectory(path+"/none", nil); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("%v", err)
	}
	writeFile(t, path+"/file", "")
	if _, err := nfs3.OpenDirectory(path+"/file", nil); nfs3.StatusOf(err) != nfs3.ErrNotDir {
		t.Errorf("%v", err)
	}
}

// TestDirectoryDoesNotOpenDevices checks that a FIFO without a writer does not block.
func TestDirectoryDoesNotOpenDevices(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	u.must(syscall.Mkfifo(path+"/fifo", 0o666))
	fifo := u.lookup(u.root, "fifo")
	_, _, err := u.fs.Read(u.ctx, nil, fifo.Handle, make([]byte, 1), 0)
	u.want("read of a FIFO", err, nfs3.ErrInval)
	_, _, err = u.fs.Write(u.ctx, nil, fifo.Handle, make([]byte, 1), 0, nfs3.Unstable)
	u.want("write of a FIFO", err, nfs3.ErrInval)
	u.want("size of a FIFO", u.set(fifo.Handle, nfs3.SetAttr{Size: ptr(uint64(0))}), nfs3.ErrInval)
	_, _, err = u.fs.Commit(u.ctx, nil, fifo.Handle, 0, 0)
	u.want("commit of a FIFO", err, nfs3.ErrInval)
}

// TestDirectoryActsForCallers checks that objects are made by the caller and not by root, by many at
// once, and that root's threads are root's afterwards.
func TestDirectoryActsForCallers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act for several users")
	}
	u, _, path := directoryUser(t, nil)
	u.must(os.Chmod(path, 0o777))
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for j := range 20 {
				c := &nfs3.Cred{UID: uint32(2000 + i), GID: uint32(3000 + i), GIDs: []uint32{4000}}
				o, _, err := u.fs.Create(u.ctx, c, u.root, fmt.Sprintf("%d-%d", i, j), &nfs3.CreateHow{Set: mode(0o600)})
				if err != nil || o.Attr.UID != c.UID || o.Attr.GID != c.GID {
					t.Errorf("%+v, %v", o.Attr, err)
				}
				name := fmt.Sprintf("%s/root %d %d", path, i, j)
				if err := os.WriteFile(name, nil, 0o600); err != nil {
					t.Error(err)
				} else if info, _ := os.Stat(name); info.Sys().(*syscall.Stat_t).Uid != 0 {
					t.Error("a thread of root's is another user's")
				}
			}
		})
	}
	all.Wait()
}
