package localfs_test

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
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
)

// directoryUser returns a caller of a directory, and its path.
func directoryUser(t *testing.T, o *localfs.DirectoryOptions) (*nfs3test.User, *localfs.Directory, string) {
	path := t.TempDir()
	d, err := localfs.OpenDirectory(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return nfs3test.NewUser(t, d, nil), d, path
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
	d, g := u.Lookup(u.Root, "d"), u.Lookup(u.Root, "g")
	f := u.Lookup(d.Handle, "f")
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
			if n, _, err := u.FS.Read(u.Ctx, nil, h, b, 0); err == nil {
				reads++
				if got := string(b[:n]); got != "in here" {
					t.Fatalf("read %q", got)
				}
			}
		}
		for _, h := range []nfs3.Handle{f.Handle, g.Handle} {
			u.FS.Write(u.Ctx, nil, h, []byte("in here"), 0, nfs3.Unstable)
			u.FS.SetAttr(u.Ctx, nil, h, &nfs3.SetAttr{Mode: new(uint32(0o600))}, nil)
		}
		u.FS.Create(u.Ctx, nil, u.Root, "g", &nfs3.CreateHow{Set: nfs3.SetAttr{Size: new(uint64(7))}})
		u.FS.Lookup(u.Ctx, nil, u.Root, "g")
		u.FS.Create(u.Ctx, nil, d.Handle, "new", &nfs3.CreateHow{})
		u.FS.Mkdir(u.Ctx, nil, d.Handle, "newdir", &nfs3.SetAttr{})
		u.FS.Rename(u.Ctx, nil, d.Handle, "new", d.Handle, "newer")
		u.FS.Remove(u.Ctx, nil, d.Handle, "newer")
		u.FS.Lookup(u.Ctx, nil, u.Root, "d")
		u.FS.ReadDir(u.Ctx, nil, d.Handle, nfs3.DirPosition{}, true, func(e *nfs3.DirEntry) bool { return true })
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
	s := u.Lookup(u.Root, "s")
	_, _, err := u.FS.Create(u.Ctx, nil, s.Handle, "x", &nfs3.CreateHow{})
	u.Want("create in a link", err, nfs3.ErrNotDir)
	_, _, err = u.FS.Create(u.Ctx, nil, u.Root, "s", &nfs3.CreateHow{Set: nfs3.SetAttr{Size: new(uint64(0))}})
	u.Want("create over a link", err, nfs3.ErrExist)
	u.Must(u.SetAttr(s.Handle, nfs3.SetAttr{SetMtime: nfs3.ClientTime, Mtime: nfs3.Time{Seconds: 99}}))
	if info, err := os.Stat(outside); err != nil || info.ModTime().Unix() == 99 {
		t.Errorf("%v, %v", info.ModTime(), err)
	}
	if a := u.GetAttr(s.Handle); a.Mtime.Seconds != 99 {
		t.Errorf("the link has %+v", a)
	}
	u.SetAttr(s.Handle, nfs3test.Mode(0o000))
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() == 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestDirectoryRenamedByOthers checks that a handle stays valid where others have given another name to what it stands for, or to what is above it,
// is stale once they have moved that to another directory, and is valid again when that was looked up.
func TestDirectoryRenamedByOthers(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	a := u.Mkdir(u.Root, "a", 0o755)
	sub := u.Mkdir(a.Handle, "sub", 0o755)
	f := u.Create(sub.Handle, "f", 0o644)
	u.Write(f.Handle, 0, "data")
	move(t, path+"/a", path+"/b")
	move(t, path+"/b/sub/f", path+"/b/sub/g")
	if got := u.Read(f.Handle, 0, 9); got != "data" {
		t.Errorf("%q", got)
	}
	move(t, path+"/b/sub/g", path+"/b/sub/f")
	if _, _, err := u.FS.Create(u.Ctx, nil, a.Handle, "new", &nfs3.CreateHow{}); err != nil {
		t.Errorf("create in what was renamed: %v", err)
	}
	move(t, path+"/b", path+"/c")
	if _, _, err := u.FS.Rename(u.Ctx, nil, a.Handle, "new", sub.Handle, "newer"); err != nil {
		t.Errorf("rename in what was renamed: %v", err)
	}
	move(t, path+"/c/sub/newer", path+"/c/new")
	move(t, path+"/c", path+"/b")
	u.Read(f.Handle, 0, 9)
	if b := u.Lookup(u.Root, "b"); b.Handle != a.Handle {
		t.Error("the directory has another handle")
	}
	// The parent becomes the child.
	move(t, path+"/b/sub", path+"/sub")
	move(t, path+"/b", path+"/sub/b")
	_, err := u.FS.GetAttr(u.Ctx, nil, sub.Handle)
	u.Want("what was moved up", err, nfs3.ErrStale)
	_, err = u.FS.GetAttr(u.Ctx, nil, f.Handle)
	u.Want("below what was moved up", err, nfs3.ErrStale)
	if o := u.Lookup(u.Root, "sub"); o.Handle != sub.Handle {
		t.Error("the directory has another handle")
	}
	if o := u.Lookup(sub.Handle, "b"); o.Handle != a.Handle {
		t.Error("the directory has another handle")
	}
	if got := u.Read(f.Handle, 0, 9); got != "data" {
		t.Errorf("%q", got)
	}
	// Another file under the same name.
	writeFile(t, path+"/new", "other")
	move(t, path+"/new", path+"/sub/f")
	_, err = u.FS.GetAttr(u.Ctx, nil, f.Handle)
	u.Want("what was replaced", err, nfs3.ErrStale)
	if err := os.RemoveAll(path + "/sub"); err != nil {
		t.Fatal(err)
	}
	_, err = u.FS.Lookup(u.Ctx, nil, sub.Handle, "f")
	u.Want("what was removed", err, nfs3.ErrStale)
}

// TestDirectoryChangesBelow checks that a file that others cut, fill and remove while it is read is short
// reads and errors, and zeros or what they wrote.
func TestDirectoryChangesBelow(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	f := u.Create(u.Root, "f", 0o644)
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
		n, _, err := u.FS.Read(u.Ctx, nil, f.Handle, b, 0)
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
	deep := nfs3.Object{Handle: u.Root}
	for i := range 10 {
		deep = u.Mkdir(deep.Handle, fmt.Sprint("d", i), 0o755)
	}
	f := u.Create(deep.Handle, "f", 0o644)
	first := u.Create(u.Root, "first", 0o644)
	for i := range 200 {
		u.Create(u.Root, fmt.Sprint(i), 0o644)
		if i%10 == 0 {
			u.GetAttr(f.Handle)
		}
	}
	if n := d.Places(); n > 50 {
		t.Errorf("%d places", n)
	}
	u.GetAttr(first.Handle)
	for i := range 200 {
		u.GetAttr(u.Lookup(u.Root, fmt.Sprint(i)).Handle)
	}
	_, err := u.FS.GetAttr(u.Ctx, nil, f.Handle)
	u.Want("the deep one", err, nfs3.ErrStale)
	deep = nfs3.Object{Handle: u.Root}
	for i := range 10 {
		deep = u.Lookup(deep.Handle, fmt.Sprint("d", i))
	}
	u.GetAttr(u.Lookup(deep.Handle, "f").Handle)
	if got := len(u.List(u.Root, true, 1000)); got != 204 || d.Places() > 50 {
		t.Errorf("%d entries, %d places", got, d.Places())
	}
}

// TestDirectoryLeavesNothingOpen checks that file descriptors are closed, also where something fails.
func TestDirectoryLeavesNothingOpen(t *testing.T) {
	u, _, path := directoryUser(t, &localfs.DirectoryOptions{SyncMetadata: true})
	open := func() (n int) {
		entries, err := os.ReadDir("/proc/self/fd")
		u.Must(err)
		for _, e := range entries { // other tests have some of their own
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, path) {
				n++
			}
		}
		return n
	}
	before := open()
	a := u.Mkdir(u.Root, "a", 0o755)
	f := u.Create(a.Handle, "f", 0o644)
	for range 20 {
		u.Write(f.Handle, 0, "x")
		u.Read(f.Handle, 0, 1)
		u.FS.Commit(u.Ctx, nil, f.Handle, 0, 0)
		u.FS.Commit(u.Ctx, nil, a.Handle, 0, 0)
		u.FS.Read(u.Ctx, nil, a.Handle, nil, 0)
		u.FS.Write(u.Ctx, nil, a.Handle, nil, 0, nfs3.FileSync)
		u.FS.Create(u.Ctx, nil, f.Handle, "x", &nfs3.CreateHow{})
		u.FS.Create(u.Ctx, nil, a.Handle, "f", &nfs3.CreateHow{Mode: nfs3.Exclusive})
		u.FS.Lookup(u.Ctx, nil, a.Handle, "..")
		u.FS.Lookup(u.Ctx, nil, a.Handle, "none")
		u.FS.Lookup(u.Ctx, nil, f.Handle, "none")
		u.FS.Rename(u.Ctx, nil, a.Handle, "none", f.Handle, "none")
		u.FS.Rename(u.Ctx, nil, a.Handle, "f", u.Root, "f")
		u.FS.Rename(u.Ctx, nil, u.Root, "f", a.Handle, "f")
		u.FS.Link(u.Ctx, nil, f.Handle, f.Handle, "x")
		u.FS.Symlink(u.Ctx, nil, a.Handle, "f", "x", &nfs3.SetAttr{})
		u.FS.FSStat(u.Ctx, nil, f.Handle)
		u.FS.ReadLink(u.Ctx, nil, f.Handle)
		u.List(a.Handle, true, 1)
		u.SetAttr(f.Handle, nfs3.SetAttr{Mode: new(uint32(0o600)), Size: new(uint64(9)), SetMtime: nfs3.ServerTime})
	}
	if after := open(); after != before || before != 1 {
		t.Errorf("%d file descriptors are open, %d were", after, before)
	}
}

// TestOpenDirectoryFails checks that a directory that is not there is an error that names it.
func TestOpenDirectoryFails(t *testing.T) {
	_, _, path := directoryUser(t, nil)
	if _, err := localfs.OpenDirectory(path+"/none", nil); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("%v", err)
	}
	writeFile(t, path+"/file", "")
	if _, err := localfs.OpenDirectory(path+"/file", nil); nfs3.StatusOf(err) != nfs3.ErrNotDir {
		t.Errorf("%v", err)
	}
}

// TestDirectoryDoesNotOpenDevices checks that a FIFO without a writer does not block.
func TestDirectoryDoesNotOpenDevices(t *testing.T) {
	u, _, path := directoryUser(t, nil)
	u.Must(syscall.Mkfifo(path+"/fifo", 0o666))
	fifo := u.Lookup(u.Root, "fifo")
	_, _, err := u.FS.Read(u.Ctx, nil, fifo.Handle, make([]byte, 1), 0)
	u.Want("read of a FIFO", err, nfs3.ErrInval)
	_, _, err = u.FS.Write(u.Ctx, nil, fifo.Handle, make([]byte, 1), 0, nfs3.Unstable)
	u.Want("write of a FIFO", err, nfs3.ErrInval)
	u.Want("size of a FIFO", u.SetAttr(fifo.Handle, nfs3.SetAttr{Size: new(uint64(0))}), nfs3.ErrInval)
	_, _, err = u.FS.Commit(u.Ctx, nil, fifo.Handle, 0, 0)
	u.Want("commit of a FIFO", err, nfs3.ErrInval)
}

// TestDirectoryActsForCallers checks that objects are made by the caller and not by root, by many at
// once, and that root's threads are root's afterwards.
func TestDirectoryActsForCallers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act for several users")
	}
	u, _, path := directoryUser(t, nil)
	u.Must(os.Chmod(path, 0o777))
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for j := range 20 {
				c := &nfs3.Cred{UID: uint32(2000 + i), GID: uint32(3000 + i), GIDs: []uint32{4000}}
				o, _, err := u.FS.Create(u.Ctx, c, u.Root, fmt.Sprintf("%d-%d", i, j), &nfs3.CreateHow{Set: nfs3test.Mode(0o600)})
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
