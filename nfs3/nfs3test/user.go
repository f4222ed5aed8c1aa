// Package nfs3test has a caller of a file system of package nfs3, for the tests of several packages.
package nfs3test

import (
	"context"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

// User is a caller of a file system, whose test fails where an operation does.
type User struct {
	*testing.T
	Ctx  context.Context
	FS   nfs3.FS
	Cred *nfs3.Cred
	Root nfs3.Handle
}

// NewUser returns a user of a file system. cred may be nil: user 0.
func NewUser(t *testing.T, fs nfs3.FS, cred *nfs3.Cred) *User {
	t.Helper()
	root, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &User{t, t.Context(), fs, cred, root.Handle}
}

// As returns another user of the same file system.
func (u *User) As(uid, gid uint32, gids ...uint32) *User {
	other := *u
	other.Cred = &nfs3.Cred{UID: uid, GID: gid, GIDs: gids}
	return &other
}

// Must fails the test if err is not nil.
func (u *User) Must(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

// Want fails the test if err is not of this status.
func (u *User) Want(what string, err error, want ...nfs3.Status) {
	u.Helper()
	if got := nfs3.StatusOf(err); !slices.Contains(want, got) {
		u.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// Mode returns what sets a mode.
func Mode(m uint32) nfs3.SetAttr { return nfs3.SetAttr{Mode: &m} }

// Create makes a file, which is not there.
func (u *User) Create(dir nfs3.Handle, name string, m uint32) nfs3.Object {
	u.Helper()
	o, _, err := u.FS.Create(u.Ctx, u.Cred, dir, name, &nfs3.CreateHow{Mode: nfs3.Guarded, Set: Mode(m)})
	u.Must(err)
	return o
}

// Mkdir makes a directory.
func (u *User) Mkdir(dir nfs3.Handle, name string, m uint32) nfs3.Object {
	u.Helper()
	o, _, err := u.FS.Mkdir(u.Ctx, u.Cred, dir, name, new(Mode(m)))
	u.Must(err)
	return o
}

// Write writes all of data, as Unstable.
func (u *User) Write(h nfs3.Handle, offset uint64, data string) {
	u.Helper()
	w, _, err := u.FS.Write(u.Ctx, u.Cred, h, []byte(data), offset, nfs3.Unstable)
	u.Must(err)
	if int(w.Count) != len(data) {
		u.Fatalf("%d octets of %d were written", w.Count, len(data))
	}
}

// Read returns what a file has at an offset, at most n octets.
func (u *User) Read(h nfs3.Handle, offset uint64, n int) string {
	u.Helper()
	b := make([]byte, n)
	n, _, err := u.FS.Read(u.Ctx, u.Cred, h, b, offset)
	u.Must(err)
	return string(b[:n])
}

// GetAttr returns the attributes of an object.
func (u *User) GetAttr(h nfs3.Handle) nfs3.Attr {
	u.Helper()
	a, err := u.FS.GetAttr(u.Ctx, u.Cred, h)
	u.Must(err)
	return a
}

// Lookup returns an entry of a directory.
func (u *User) Lookup(dir nfs3.Handle, name string) nfs3.Object {
	u.Helper()
	o, err := u.FS.Lookup(u.Ctx, u.Cred, dir, name)
	u.Must(err)
	return o
}

// SetAttr sets attributes, without a guard.
func (u *User) SetAttr(h nfs3.Handle, set nfs3.SetAttr) error {
	_, err := u.FS.SetAttr(u.Ctx, u.Cred, h, &set, nil)
	return err
}

// List returns the entries of a directory, asked for so many at a time.
func (u *User) List(dir nfs3.Handle, plus bool, at int) (all []nfs3.DirEntry) {
	u.Helper()
	var from nfs3.DirPosition
	for {
		n := 0
		end, err := u.FS.ReadDir(u.Ctx, u.Cred, dir, from, plus, func(e *nfs3.DirEntry) bool {
			if n == at {
				return false
			}
			n++
			from.Cookie = e.Cookie
			all = append(all, *e)
			return true
		})
		u.Must(err)
		if from.Verifier = end.Verifier; end.EOF {
			return all
		}
		if len(all) > 1<<17 {
			u.Fatal("the directory has no end")
		}
	}
}
