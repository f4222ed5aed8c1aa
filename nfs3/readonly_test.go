package nfs3_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/rpc"
)

// notes is a directory of notes, which are files. The handle of the directory is "/", and that of a note is its name.
type notes struct {
	nfs3.ReadOnlyFS
	names []string
	texts map[string]string
}

func (n *notes) Root(ctx context.Context) (nfs3.Object, error) { return n.object(ctx, "/") }

func (n *notes) object(ctx context.Context, h nfs3.Handle) (nfs3.Object, error) {
	a, err := n.GetAttr(ctx, nil, h)
	return nfs3.Object{Handle: h, Attr: a}, err
}

func (n *notes) GetAttr(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.Attr, error) {
	if h == "/" {
		return nfs3.Attr{Type: nfs3.TypeDirectory, Mode: 0o555, Links: 2, FileID: 1}, nil
	}
	for i, name := range n.names {
		if string(h) == name {
			size := uint64(len(n.texts[name]))
			return nfs3.Attr{Type: nfs3.TypeRegular, Mode: 0o444, Links: 1, Size: size, Used: size, FileID: uint64(i) + 2}, nil
		}
	}
	return nfs3.Attr{}, nfs3.ErrStale
}

func (n *notes) Lookup(ctx context.Context, _ *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.Object, error) {
	switch {
	case dir != "/":
		return nfs3.Object{}, nfs3.ErrNotDir
	case name == "." || name == "..":
		return n.Root(ctx)
	}
	found, err := n.object(ctx, nfs3.Handle(name))
	if err != nil {
		return found, nfs3.ErrNoEnt
	}
	return found, nil
}

func (n *notes) Read(_ context.Context, _ *nfs3.Cred, h nfs3.Handle, dst []byte, offset uint64) (int, bool, error) {
	text := n.texts[string(h)]
	got := copy(dst, text[min(offset, uint64(len(text))):])
	return got, offset+uint64(got) >= uint64(len(text)), nil
}

func (n *notes) ReadDir(_ context.Context, _ *nfs3.Cred, _ nfs3.Handle, from nfs3.DirPosition, _ bool, each func(*nfs3.DirEntry) bool) (nfs3.DirEnd, error) {
	for i := int(min(from.Cookie, uint64(len(n.names)))); i < len(n.names); i++ {
		if !each(&nfs3.DirEntry{FileID: uint64(i) + 2, Name: n.names[i], Cookie: uint64(i) + 1}) {
			return nfs3.DirEnd{}, nil
		}
	}
	return nfs3.DirEnd{EOF: true}, nil
}

// A file system of the program: five methods, and ReadOnlyFS for the others. (This one is a directory of files; type notes is in the same file.)
func ExampleReadOnlyFS() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := rpc.NewServer(nil)
	own := &notes{names: []string{"one", "two"}, texts: map[string]string{"one": "a note", "two": "another note"}}
	nfs3.NewServer(own, nil).Register(server)
	go server.ServeTCP(listener)
	defer server.Close()

	ctx := context.Background()
	client, err := nfs3.Dial(ctx, "tcp:"+listener.Addr().String(), "/", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	files, err := nfs3.NewVolume(ctx, client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		fmt.Printf("%s: %s, %v\n", path, text, err)
		return nil
	})
	fmt.Println(files.WriteFile("three", nil, 0o644))
	// Output:
	// one: a note, <nil>
	// two: another note, <nil>
	// create three: CREATE: read-only file system
}

// TestReadOnlyFS checks that a file system of five methods and ReadOnlyFS can be mounted and read by a client and by Linux's rules: no size of FSINFO is 0,
// all that changes something is ErrROFS, and the volume of such a file system without a server reads as well.
func TestReadOnlyFS(t *testing.T) {
	own := &notes{names: []string{"one"}, texts: map[string]string{"one": "a note"}}
	for _, c := range []struct {
		name string
		fs   nfs3.FS
	}{{"itself", own}, {"over TCP", remote(t, own, serve)}, {"over RDMA", remote(t, own, serveRDMA)}} {
		v, err := nfs3.NewVolume(t.Context(), c.fs, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if b, err := v.ReadFile("one"); err != nil || string(b) != "a note" {
			t.Errorf("%s: %q, %v", c.name, b, err)
		}
		u := nfs3test.NewUser(t, c.fs, &nfs3.Cred{UID: 1000})
		h, set := nfs3.Handle("one"), &nfs3.SetAttr{}
		_, err = u.FS.SetAttr(u.Ctx, u.Cred, h, set, nil)
		u.Want("SETATTR", err, nfs3.ErrROFS)
		_, _, err = u.FS.Write(u.Ctx, u.Cred, h, []byte("x"), 0, nfs3.Unstable)
		u.Want("WRITE", err, nfs3.ErrROFS)
		_, _, err = u.FS.Create(u.Ctx, u.Cred, u.Root, "new", &nfs3.CreateHow{})
		u.Want("CREATE", err, nfs3.ErrROFS)
		_, _, err = u.FS.Mkdir(u.Ctx, u.Cred, u.Root, "new", set)
		u.Want("MKDIR", err, nfs3.ErrROFS)
		_, _, err = u.FS.Symlink(u.Ctx, u.Cred, u.Root, "new", "one", set)
		u.Want("SYMLINK", err, nfs3.ErrROFS)
		_, _, err = u.FS.Mknod(u.Ctx, u.Cred, u.Root, "new", &nfs3.NodeSpec{Type: nfs3.TypeFIFO})
		u.Want("MKNOD", err, nfs3.ErrROFS)
		_, err = u.FS.Remove(u.Ctx, u.Cred, u.Root, "one")
		u.Want("REMOVE", err, nfs3.ErrROFS)
		_, err = u.FS.Rmdir(u.Ctx, u.Cred, u.Root, "one")
		u.Want("RMDIR", err, nfs3.ErrROFS)
		_, _, err = u.FS.Rename(u.Ctx, u.Cred, u.Root, "one", u.Root, "two")
		u.Want("RENAME", err, nfs3.ErrROFS)
		_, _, err = u.FS.Link(u.Ctx, u.Cred, h, u.Root, "two")
		u.Want("LINK", err, nfs3.ErrROFS)
		_, err = u.FS.ReadLink(u.Ctx, u.Cred, h)
		u.Want("READLINK", err, nfs3.ErrInval)
		_, _, err = u.FS.Commit(u.Ctx, u.Cred, h, 0, 0)
		u.Want("COMMIT", err, nfs3.OK)
		_, err = u.FS.FSStat(u.Ctx, u.Cred, u.Root)
		u.Want("FSSTAT", err, nfs3.OK)
		all := nfs3.AccessRead | nfs3.AccessLookup | nfs3.AccessModify | nfs3.AccessExtend | nfs3.AccessDelete | nfs3.AccessExecute
		if a, err := u.FS.Access(u.Ctx, u.Cred, h, all); err != nil || a != nfs3.AccessRead|nfs3.AccessLookup|nfs3.AccessExecute {
			t.Errorf("%s: ACCESS grants %#x, %v", c.name, a, err)
		}
		if c.name == "itself" {
			continue
		}
		want := nfs3.FSInfo{
			ReadMax: nfs3.MaxData, ReadPref: nfs3.MaxData, ReadMult: 4096, WriteMax: nfs3.MaxData, WritePref: nfs3.MaxData, WriteMult: 4096,
			DirPref: 1 << 16, MaxFileSize: 1<<63 - 1, TimeDelta: nfs3.Time{Nanoseconds: 1}, Properties: nfs3.Homogeneous,
		}
		if info, err := u.FS.FSInfo(u.Ctx, u.Cred, u.Root); err != nil || info != want {
			t.Errorf("%s: FSINFO %+v, %v", c.name, info, err)
		}
		if conf, err := u.FS.PathConf(u.Ctx, u.Cred, u.Root); err != nil || conf.NameMax != nfs3.MaxName || conf.LinkMax == 0 {
			t.Errorf("%s: PATHCONF %+v, %v", c.name, conf, err)
		}
	}
}

// sized is a file system with sizes of its own.
type sized struct {
	nfs3.FS
	info nfs3.FSInfo
}

func (s *sized) FSInfo(context.Context, *nfs3.Cred, nfs3.Handle) (nfs3.FSInfo, error) {
	return s.info, nil
}

// TestSizesOfFSInfo checks that a server keeps to the sizes that a file system has, up to MaxData, and that what is best is no more than what there may be.
func TestSizesOfFSInfo(t *testing.T) {
	fs := &sized{localfs.NewMemory(nil), nfs3.FSInfo{ReadMax: 8192, WriteMax: 1 << 30, WriteMult: 512, DirPref: 1 << 30, MaxFileSize: 5, TimeDelta: nfs3.Time{Seconds: 1}}}
	c := dial(t, serve(t, fs, nil), "/")
	root, _ := c.Root(t.Context())
	want := nfs3.FSInfo{
		ReadMax: 8192, ReadPref: 8192, ReadMult: 4096, WriteMax: nfs3.MaxData, WritePref: nfs3.MaxData, WriteMult: 512,
		DirPref: 1 << 16, MaxFileSize: 5, TimeDelta: nfs3.Time{Seconds: 1},
	}
	if info, err := c.FSInfo(t.Context(), nil, root.Handle); err != nil || info != want {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestServerThatWritesNothing checks that a client takes a server that writes nothing, as one of a read-only file system may say by FSINFO, and that
// its writes are ErrROFS; and that it does not take one that reads nothing.
func TestServerThatWritesNothing(t *testing.T) {
	answer := nfs3.FSInfoResult{Info: nfs3.FSInfo{ReadMax: 4096}}
	r := rpc.NewServer(nil)
	r.Handle(nfs3.Program, rpc.HandlerFunc(func(_ context.Context, c *rpc.Call) error {
		if c.Procedure != nfs3.ProcFSInfo {
			return rpc.ErrProcedureUnavailable
		}
		return c.Reply(&answer)
	}))
	here, there := net.Pipe()
	go r.ServeConn(there)
	defer r.Close()
	transport := rpc.NewClient(here, nil)
	defer transport.Close()
	c, err := nfs3.NewClient(t.Context(), transport, "root", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Write(t.Context(), nil, "file", []byte("x"), 0, nfs3.FileSync); !errors.Is(err, nfs3.ErrROFS) || !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	answer.Info = nfs3.FSInfo{WriteMax: 4096}
	if _, err := nfs3.NewClient(t.Context(), transport, "root", nil); err == nil {
		t.Error("a server that reads nothing is taken")
	}
}
