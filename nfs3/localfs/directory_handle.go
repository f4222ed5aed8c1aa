package localfs

import (
	"encoding/binary"
	"math/bits"

	"github.com/dgrdma/dgrdma/nfs3"
	"golang.org/x/sys/unix"
)

// A handle of a [Directory] says which object it is of, so that it is valid after a restart as well, and which directories are above it,
// so that the object can be found then:
//
//	octets  what
//	1       1: this layout
//	1       how many directories there are between the root and the object; tooDeep: more than a handle has room for
//	24      identity: device, inode, seconds and nanoseconds of birth
//	4 each  sums of the identities of these directories, from the root on, without their birth
//
// It is no secret: a client that knows identities may make handles, and reaches nothing outside of the root.
const (
	handleLayout = 1
	identitySize = 24
	handleLeast  = 2 + identitySize
	sumSize      = 4
	sumsInHandle = (nfs3.MaxHandle - handleLeast) / sumSize // 9
	tooDeep      = 255
	mostSearched = 1 << 16 // entries of directories that a search looks at. It is arbitrary: what takes some 10 ms
	mostSearches = 64      // searches that wait, and the one that goes on. It is arbitrary
)

// identity tells an object from all others, also from one that is there later with the same inode.
type identity struct {
	dev, inode uint64
	born       nfs3.Time // where the file system knows it
}

// sum returns what handles have of a directory that is above their object.
func (id identity) sum() uint32 {
	return uint32((id.inode ^ bits.RotateLeft64(id.dev, 32)) * 0x9e3779b97f4a7c15 >> 32)
}

// handleOf returns the handle of an object where it is now.
func handleOf(p *place) nfs3.Handle {
	var above []uint32
	for q := p.parent; q != nil && q.parent != nil; q = q.parent {
		above = append(above, q.id.sum())
	}
	b := []byte{handleLayout, byte(len(above))}
	if len(above) > sumsInHandle {
		b[1], above = tooDeep, nil
	}
	b = binary.BigEndian.AppendUint64(b, p.id.dev)
	b = binary.BigEndian.AppendUint64(b, p.id.inode)
	b = binary.BigEndian.AppendUint32(b, p.id.born.Seconds)
	b = binary.BigEndian.AppendUint32(b, p.id.born.Nanoseconds)
	for i := len(above) - 1; i >= 0; i-- {
		b = binary.BigEndian.AppendUint32(b, above[i])
	}
	return nfs3.Handle(b)
}

// identityOf returns the identity that a handle has.
func identityOf(h nfs3.Handle) (identity, error) {
	b := []byte(h)
	if len(b) < handleLeast || b[0] != handleLayout || b[1] != tooDeep && len(b) != handleLeast+int(b[1])*sumSize || b[1] == tooDeep && len(b) != handleLeast {
		return identity{}, nfs3.ErrBadHandle
	}
	b = b[2:]
	return identity{
		binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), nfs3.Time{Seconds: binary.BigEndian.Uint32(b[16:]), Nanoseconds: binary.BigEndian.Uint32(b[20:])},
	}, nil
}

// lostError is what open returns for a handle whose object is not where the table has it, or which the table does not know.
type lostError struct{ handle nfs3.Handle }

func (e *lostError) Error() string { return nfs3.ErrStale.Error() }
func (e *lostError) Unwrap() error { return nfs3.ErrStale }

// sought is the handles that were searched for during an operation: it has two at most, and the directory above one.
type sought [3]*lostError

// found searches for what open has not found, and reports whether the operation is to be tried again. If not, err is what the caller is told.
// A second try follows also a search that has found nothing: a rename may have told the table where the object is. No lock is held.
func (d *Directory) found(s *sought, err *error) bool {
	lost, is := (*err).(*lostError)
	if !is {
		return false
	}
	*err = nfs3.ErrStale
	for i, before := range s {
		switch {
		case before == nil:
			s[i] = lost
			if failed := d.search(lost.handle); failed != nil && failed != nfs3.ErrStale {
				*err = failed
				return false
			}
			return true
		case before.handle == lost.handle:
			return false
		}
	}
	return false
}

// search finds the object of a handle that is not where the table has it, as after a restart, and notes where it is. It goes down from the root, and looks
// for one directory after the other by their inodes: what it arrives at must be the object that had the handle. It fails with
// ErrStale for an object that was moved since, where the file system does not know when it was made (its inode may be another object's
// by now), and if it would have to look at more than mostSearched entries; and with nfs3.ErrJukebox if too many searches wait.
//
// Directory.moves is held for its steps only: renames, and what comes after them, would else wait for clients with wrong handles.
func (d *Directory) search(h nfs3.Handle) error {
	want, err := identityOf(h)
	if err != nil {
		return err
	}
	if want.born == (nfs3.Time{}) || h[1] == tooDeep {
		return nfs3.ErrStale
	}
	defer d.waiting.Add(-1)
	if d.waiting.Add(1) > mostSearches {
		return nfs3.ErrJukebox
	}
	d.searches.Lock() // so that clients with wrong handles take one processor at most
	defer d.searches.Unlock()
	fd, err := again(func() (int, error) { return unix.Dup(d.root) })
	if err != nil {
		return err
	}
	defer func() { unix.Close(fd) }()
	at, left := d.table.root, d.searched
	for above := []byte(h[handleLeast:]); ; above = above[sumSize:] {
		last := len(above) == 0
		is := func(id identity) bool {
			return last && id.inode == want.inode || !last && id.sum() == binary.BigEndian.Uint32(above)
		}
		name, err := scan(fd, &left, func(inode uint64) bool { return is(identity{dev: at.id.dev, inode: inode}) })
		if err != nil {
			return gone(err)
		}
		if fd, at, err = d.down(fd, at, name, func(id identity) bool { return is(id) && (!last || id == want) }); err != nil || last {
			return err
		}
	}
}

// down is a step of search: to an entry of the directory fd, which it closes, if that is what is looked for. It notes where that is.
func (d *Directory) down(fd int, at *place, name string, is func(identity) bool) (int, *place, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	fd, err := step(fd, name, 0)
	if err != nil {
		return fd, nil, gone(err)
	}
	_, id, err := attrOf(fd, "")
	if err == nil && !is(id) {
		err = nfs3.ErrStale
	}
	if err == nil {
		at, err = d.table.seen(id, at, name)
	}
	return fd, at, err
}

// scan returns the name of the entry of a directory that has an inode which is looked for. left is how many entries may be looked at.
func scan(dir int, left *int, is func(inode uint64) bool) (string, error) {
	fd, err := again(func() (int, error) { return unix.Open(link(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	b := make([]byte, listBuffer)
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, b) })
		if err != nil {
			return "", err
		}
		if n == 0 {
			return "", nfs3.ErrStale
		}
		for rest := b[:n]; len(rest) > 0; {
			if *left--; *left < 0 {
				return "", nfs3.ErrStale
			}
			found, size := is(binary.NativeEndian.Uint64(rest)), int(binary.NativeEndian.Uint16(rest[16:]))
			if found {
				if e, _ := dirent(rest); e.Name != "." && e.Name != ".." {
					return e.Name, nil
				}
			}
			rest = rest[size:]
		}
	}
}
