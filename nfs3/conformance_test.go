package nfs3_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

// kinds are the file systems that must all behave alike, used by their methods and by server and client.
var kinds = map[string]func(t *testing.T) nfs3.FS{
	"memory":    func(*testing.T) nfs3.FS { return nfs3.NewMemory(nil) },
	"directory": openDirectory,

	"memory over TCP":    func(t *testing.T) nfs3.FS { return remote(t, nfs3.NewMemory(nil), serve) },
	"directory over TCP": func(t *testing.T) nfs3.FS { return remote(t, openDirectory(t), serve) },

	"memory over RDMA":    func(t *testing.T) nfs3.FS { return remote(t, nfs3.NewMemory(nil), serveRDMA) },
	"directory over RDMA": func(t *testing.T) nfs3.FS { return remote(t, openDirectory(t), serveRDMA) },
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
