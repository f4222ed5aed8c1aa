package nfs3_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// caller makes raw calls.
type caller struct {
	*testing.T
	nfs, mount *rpc.Binding
	client     *rpc.Client
}

func callerOf(t *testing.T, address string, a rpc.Auth) *caller {
	t.Helper()
	c, err := rpc.Dial(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &caller{t, c.Bind(nfs3.Program, a), c.Bind(nfs3.MountProgram, a), c}
}

func (c *caller) call(procedure uint32, args xdr.Marshaler, results xdr.Unmarshaler) {
	c.Helper()
	if err := c.nfs.Call(c.Context(), procedure, args, results, nil); err != nil {
		c.Fatal(err)
	}
}

func (c *caller) mnt(path string) nfs3.MountResult {
	c.Helper()
	var r nfs3.MountResult
	if err := c.mount.Call(c.Context(), nfs3.MountMnt, &nfs3.MountPath{Path: path}, &r, nil); err != nil {
		c.Fatal(err)
	}
	return r
}

var asRoot = (&rpc.Sys{Machine: "test"}).Auth()

// TestLinuxMounts checks the calls with which Linux's client mounts, in its order: each is answered with
// what it needs (LX-29).
func TestLinuxMounts(t *testing.T) {
	c := callerOf(t, serve(t, localfs.NewMemory(nil), &nfs3.ServerOptions{Export: "/export"}), asRoot)
	mounted := c.mnt("/export")
	if mounted.Status != nfs3.OK || !slices.Contains(mounted.Flavors, 1) {
		t.Fatalf("%+v", mounted)
	}
	root := nfs3.FSArgs{Object: mounted.Root}
	c.call(nfs3.ProcNull, nil, nil)
	for range 2 {
		var info nfs3.FSInfoResult
		c.call(nfs3.ProcFSInfo, &root, &info)
		if info.Status != nfs3.OK || !info.Attr.Present || info.Info.ReadMax != 1<<20 || info.Info.WriteMax != 1<<20 || info.Info.MaxFileSize < 1<<40 {
			t.Errorf("%+v", info)
		}
		var conf nfs3.PathConfResult
		c.call(nfs3.ProcPathConf, &root, &conf)
		if conf.Status != nfs3.OK || conf.Conf.NameMax != 255 {
			t.Errorf("%+v", conf)
		}
		var attr nfs3.GetAttrResult
		c.call(nfs3.ProcGetAttr, &nfs3.GetAttrArgs{Object: mounted.Root}, &attr)
		if attr.Status != nfs3.OK || attr.Attr.Type != nfs3.TypeDirectory {
			t.Errorf("%+v", attr)
		}
		acl := c.client.Bind(&rpc.Program{Number: 100227, Version: 3, Procedures: []rpc.Procedure{{Name: "NULL"}}}, asRoot)
		var unavailable *rpc.ProgramError
		if err := acl.Call(t.Context(), 0, nil, nil, nil); !errors.As(err, &unavailable) || !unavailable.Unavailable {
			t.Errorf("NFSACL: %v", err)
		}
	}
	var access nfs3.AccessResult
	c.call(nfs3.ProcAccess, &nfs3.AccessArgs{Object: mounted.Root, Access: 0x1f}, &access)
	if access.Status != nfs3.OK || access.Access != 0x1f || !access.Attr.Present {
		t.Errorf("%+v", access)
	}
}

// TestMountPaths checks which paths can be mounted, and what MOUNT tells.
func TestMountPaths(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	d := u.Mkdir(u.Root, "dir", 0o700)
	u.Create(u.Root, "file", 0o600)
	address := serve(t, u.FS, &nfs3.ServerOptions{Export: "/srv/data/"})
	c := callerOf(t, address, rpc.None)
	for path, want := range map[string]nfs3.Status{
		"/srv/data": nfs3.OK, "/srv/data/": nfs3.OK, "srv/data": nfs3.OK, "/srv/data/dir": nfs3.OK, "/srv/data/dir/..": nfs3.OK,
		"/srv/data/file": nfs3.ErrNotDir, "/srv/data/none": nfs3.ErrNoEnt, "/srv/database": nfs3.ErrNoEnt, "/srv": nfs3.ErrNoEnt, "/": nfs3.ErrNoEnt, "": nfs3.ErrNoEnt,
		"/srv/data/../../etc": nfs3.ErrNoEnt, "/srv/data/a\x00": nfs3.ErrInval, "/srv/data/" + strings.Repeat("n", 256): nfs3.ErrNameTooLong,
	} {
		r := c.mnt(path)
		root := u.Root
		if path == "/srv/data/dir" {
			root = d.Handle
		}
		if r.Status != want || want == nfs3.OK && r.Root != root {
			t.Errorf("%q: %v, handle %v", path, r.Status, r.Root)
		}
	}
	if exports, err := nfs3.Exports(t.Context(), c.client, rpc.None); err != nil || len(exports) != 1 || exports[0].Path != "/srv/data" {
		t.Errorf("%v, %v", exports, err)
	}
	if err := nfs3.Unmount(t.Context(), c.client, "/srv/data", rpc.None); err != nil {
		t.Error(err)
	}
	var list nfs3.MountList
	if err := c.mount.Call(t.Context(), nfs3.MountDump, nil, &list, nil); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := nfs3.Dial(t.Context(), address, "/none", nil); !errors.Is(err, nfs3.ErrNoEnt) || !strings.HasPrefix(err.Error(), "mount /none: ") {
		t.Error(err)
	}
}

// TestReadDirSizes checks that a reply of READDIR and READDIRPLUS is never longer than the caller
// allows, nor what dircount counts, that it has all entries that fit, and that it is an error if not
// even one does.
func TestReadDirSizes(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	for i := range 60 {
		u.Create(u.Root, fmt.Sprintf("%d%s", i, strings.Repeat("x", i)), 0o600)
	}
	c := callerOf(t, serve(t, u.FS, nil), asRoot)
	size := func(m xdr.Marshaler) int {
		var e xdr.Encoder
		m.MarshalXDR(&e)
		return e.Len() - 4 // the status is not part of the resok
	}
	before := 0
	for count := uint32(0); count < 6000; count += 4 {
		var r nfs3.ReadDirResult
		c.call(nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: u.Root, Count: count}, &r)
		if r.Status == nfs3.ErrTooSmall {
			if count > 200 || len(r.Entries) > 0 {
				t.Errorf("count %d: %v", count, r.Status)
			}
		} else if n := size(&r); r.Status != nfs3.OK || n > int(count) || len(r.Entries) < before || !r.EOF && n+24+64+4 < int(count) || r.EOF != (len(r.Entries) == 62) {
			t.Fatalf("count %d: %d octets, %d entries, %v", count, n, len(r.Entries), r.Status)
		}
		before = len(r.Entries)
	}
	before = 0
	for count := uint32(0); count < 16000; count += 16 {
		var r nfs3.ReadDirPlusResult
		c.call(nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: u.Root, DirCount: count, MaxCount: count}, &r)
		if r.Status == nfs3.ErrTooSmall {
			if count > 300 || len(r.Entries) > 0 {
				t.Errorf("maxcount %d: %v", count, r.Status)
			}
		} else if n := size(&r); r.Status != nfs3.OK || n > int(count) || len(r.Entries) < before || r.EOF != (len(r.Entries) == 62) {
			t.Fatalf("maxcount %d: %d octets, %d entries, %v", count, n, len(r.Entries), r.Status)
		}
		before = len(r.Entries)
	}
	for dirCount := uint32(0); dirCount < 2000; dirCount += 20 {
		var r nfs3.ReadDirPlusResult
		c.call(nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: u.Root, DirCount: dirCount, MaxCount: 1 << 20}, &r)
		n := 0
		for _, e := range r.Entries {
			n += 20 + xdr.Padded(len(e.Name))
		}
		if r.Status != nfs3.OK || n > int(dirCount) && len(r.Entries) > 1 || len(r.Entries) == 0 {
			t.Fatalf("dircount %d: %d octets, %d entries, %v", dirCount, n, len(r.Entries), r.Status)
		}
	}
	var r nfs3.ReadDirResult
	c.call(nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: u.Root, Cookie: 5, Verifier: 1, Count: 4096}, &r)
	if r.Status != nfs3.ErrBadCookie {
		t.Errorf("a cookie of another verifier: %v", r.Status)
	}
}

// TestReadOnly checks that nothing can be changed, and that ACCESS says so.
func TestReadOnly(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	f := u.Create(u.Root, "f", 0o666)
	fs := dial(t, serve(t, u.FS, &nfs3.ServerOptions{ReadOnly: true, Squash: nfs3.SquashNone}), "/")
	r := nfs3test.NewUser(t, fs, nil)
	errs := map[string]error{"set": r.SetAttr(f.Handle, nfs3test.Mode(0)), "create again": nil}
	_, _, errs["write"] = fs.Write(r.Ctx, nil, f.Handle, []byte("x"), 0, nfs3.Unstable)
	_, _, errs["create"] = fs.Create(r.Ctx, nil, r.Root, "x", &nfs3.CreateHow{})
	_, _, errs["create again"] = fs.Create(r.Ctx, nil, r.Root, "f", &nfs3.CreateHow{})
	_, _, errs["mkdir"] = fs.Mkdir(r.Ctx, nil, r.Root, "x", &nfs3.SetAttr{})
	_, _, errs["symlink"] = fs.Symlink(r.Ctx, nil, r.Root, "x", "y", &nfs3.SetAttr{})
	_, _, errs["mknod"] = fs.Mknod(r.Ctx, nil, r.Root, "x", &nfs3.NodeSpec{Type: nfs3.TypeFIFO})
	_, errs["remove"] = fs.Remove(r.Ctx, nil, r.Root, "f")
	_, errs["rmdir"] = fs.Rmdir(r.Ctx, nil, r.Root, "f")
	_, _, errs["rename"] = fs.Rename(r.Ctx, nil, r.Root, "f", r.Root, "g")
	_, _, errs["link"] = fs.Link(r.Ctx, nil, f.Handle, r.Root, "g")
	for what, err := range errs {
		r.Want(what, err, nfs3.ErrROFS)
	}
	if a, err := fs.Access(r.Ctx, nil, f.Handle, 0x3f); err != nil || a != nfs3.AccessRead {
		t.Errorf("%x, %v", a, err)
	}
	if a := r.GetAttr(f.Handle); a != f.Attr {
		t.Errorf("%+v, was %+v", a, f.Attr)
	}
}

// TestSquash checks for whom a server acts.
func TestSquash(t *testing.T) {
	none := func(uid uint32) rpc.Auth { return (&rpc.Sys{UID: uid, GID: uid + 1, GIDs: []uint32{7}}).Auth() }
	for name, c := range map[string]struct {
		squash nfs3.Squash
		auth   rpc.Auth
		uid    uint32
		gid    uint32
	}{
		"root":              {nfs3.SquashRoot, none(0), 99, 98},
		"another":           {nfs3.SquashRoot, none(5), 5, 6},
		"no claim":          {nfs3.SquashRoot, rpc.None, 99, 98},
		"root, not":         {nfs3.SquashNone, none(0), 0, 1},
		"no credential":     {nfs3.SquashNone, rpc.None, 99, 98},
		"another, with all": {nfs3.SquashAll, none(5), 99, 98},
	} {
		u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
		r := callerOf(t, serve(t, u.FS, &nfs3.ServerOptions{Squash: c.squash, Anonymous: &nfs3.Cred{UID: 99, GID: 98}}), c.auth)
		var made nfs3.CreateResult
		r.call(nfs3.ProcCreate, &nfs3.CreateArgs{Where: nfs3.DirName{Dir: u.Root, Name: "f"}}, &made)
		if made.Status != nfs3.OK || made.Attr.Attr.UID != c.uid || made.Attr.Attr.GID != c.gid || !made.Dir.Before.Present || !made.Dir.After.Present {
			t.Errorf("%s: %+v", name, made)
		}
	}
}

// TestSquashGroups checks that group 0 is squashed where user 0 is, as with Linux's root_squash: a caller may claim any user and be of group 0 (P20).
func TestSquashGroups(t *testing.T) {
	claim := (&rpc.Sys{UID: 5, GID: 0, GIDs: []uint32{7, 0, 8}}).Auth()
	for squash, want := range map[nfs3.Squash]*nfs3.Cred{
		nfs3.SquashRoot: {UID: 5, GID: 98, GIDs: []uint32{7, 98, 8}},
		nfs3.SquashNone: {UID: 5, GID: 0, GIDs: []uint32{7, 0, 8}},
		nfs3.SquashAll:  {UID: 99, GID: 98},
	} {
		u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
		f := u.Create(u.Root, "of-group-0", 0o060)
		u.Must(u.As(0, 0).SetAttr(f.Handle, nfs3.SetAttr{UID: new(uint32(0)), GID: new(uint32(0))}))
		var heard atomic.Pointer[nfs3.Cred]
		c := callerOf(t, serve(t, u.FS, &nfs3.ServerOptions{Squash: squash, Anonymous: &nfs3.Cred{UID: 99, GID: 98}, Done: func(s *nfs3.Served) { heard.Store(s.Cred) }}), claim)
		var r nfs3.AccessResult
		c.call(nfs3.ProcAccess, &nfs3.AccessArgs{Object: f.Handle, Access: nfs3.AccessRead | nfs3.AccessModify}, &r)
		if got := heard.Load(); !reflect.DeepEqual(got, want) || (r.Access != 0) != (squash == nfs3.SquashNone) {
			t.Errorf("squash %v: for %+v, access %v", squash, got, r.Access)
		}
	}
}

// broken is an FS whose errors a client cannot know.
type broken struct{ nfs3.FS }

var errDisk = errors.New("the disk is on fire")

func (broken) Read(context.Context, *nfs3.Cred, nfs3.Handle, []byte, uint64) (int, bool, error) {
	return 0, false, errDisk
}

// TestServerFailures checks that a client is told NFS3ERR_IO of other errors, with attributes, and the
// server's program which, and what becomes of calls that cannot be decoded.
func TestServerFailures(t *testing.T) {
	u := nfs3test.NewUser(t, localfs.NewMemory(nil), nil)
	f := u.Create(u.Root, "f", 0o666)
	var heard atomic.Value
	c := callerOf(t, serve(t, broken{u.FS}, &nfs3.ServerOptions{Failed: func(procedure string, err error) { heard.Store(fmt.Sprint(procedure, ": ", err)) }}), asRoot)
	var r nfs3.ReadResult
	c.call(nfs3.ProcRead, &nfs3.ReadArgs{File: f.Handle, Count: 100}, &r)
	if r.Status != nfs3.ErrIO || !r.Attr.Present || heard.Load() != "READ: the disk is on fire" {
		t.Errorf("%+v, heard %v", r, heard.Load())
	}
	c.call(nfs3.ProcRead, &nfs3.ReadArgs{File: "x", Count: 1<<32 - 1}, &r)
	if r.Status != nfs3.ErrIO || r.Attr.Present {
		t.Errorf("%+v", r)
	}
	for procedure := range uint32(len(nfs3.Program.Procedures)) {
		if err := c.nfs.Call(t.Context(), procedure, nil, nil, nil); procedure != 0 && !errors.Is(err, rpc.ErrGarbageArgs) {
			t.Errorf("procedure %d without arguments: %v", procedure, err)
		}
	}
	if err := c.nfs.Call(t.Context(), 22, nil, nil, nil); !errors.Is(err, rpc.ErrProcedureUnavailable) {
		t.Errorf("procedure 22: %v", err)
	}
	var made nfs3.CreateResult
	for _, target := range []string{"", "a\x00b"} {
		c.call(nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: nfs3.DirName{Dir: u.Root, Name: "s"}, Target: []byte(target)}, &made)
		if made.Status != nfs3.ErrInval {
			t.Errorf("target %q: %v", target, made.Status)
		}
	}
}
