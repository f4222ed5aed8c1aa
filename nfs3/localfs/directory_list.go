package localfs

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/dgrdma/dgrdma/nfs3"
	"golang.org/x/sys/unix"
)

// listBuffer is how much of a directory is asked for at once: arbitrary.
const listBuffer = 1 << 15

// ReadDir is the method of FS. Cookies are those of the file system below, and stay valid as long as it
// says: on Linux's own as long as the directory is there.
func (d *Directory) ReadDir(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, from nfs3.DirPosition, plus bool, each func(*nfs3.DirEntry) bool) (nfs3.DirEnd, error) {
	by := d.cred(c)
	o, err := d.lookDir(by, dir, nfs3.AccessRead)
	if err != nil {
		return nfs3.DirEnd{}, err
	}
	defer o.close()
	fd, err := o.openData(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return nfs3.DirEnd{}, err
	}
	defer unix.Close(fd)
	if from.Cookie != 0 {
		if _, err := unix.Seek(fd, int64(from.Cookie), unix.SEEK_SET); err != nil {
			return nfs3.DirEnd{}, nfs3.ErrBadCookie
		}
	}
	plus = plus && by.may(&o.attr, nfs3.AccessLookup)
	b := make([]byte, listBuffer)
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, b) })
		if err != nil {
			return nfs3.DirEnd{}, err
		}
		if n == 0 {
			return nfs3.DirEnd{EOF: true}, nil
		}
		for left := b[:n]; len(left) > 0; {
			e, size := dirent(left)
			left = left[size:]
			if d.complete(o, &e, plus) && !each(&e) {
				return nfs3.DirEnd{}, nil
			}
		}
	}
}

// dirent takes an entry as getdents64 returns it: inode and cookie of 8 octets, length of 2, type,
// name.
func dirent(b []byte) (e nfs3.DirEntry, size int) {
	size = int(binary.NativeEndian.Uint16(b[16:]))
	name := b[19:size]
	name = name[:bytes.IndexByte(name, 0)]
	return nfs3.DirEntry{FileID: binary.NativeEndian.Uint64(b), Name: string(name), Cookie: binary.NativeEndian.Uint64(b[8:])}, size
}

// complete gives an entry its attributes and handle. It reports whether there is such an entry: it may
// have gone, or have a name that the protocol does not know.
func (d *Directory) complete(o *object, e *nfs3.DirEntry, plus bool) bool {
	switch e.Name {
	case ".":
		if plus {
			e.Attr, e.Object = nfs3.Post(o.attr), nfs3.PostHandle{Present: true, Handle: o.at.handle}
		}
		return true
	case "..":
		if o.at == d.table.root { // what is above it is not told
			e.FileID = o.attr.FileID
		}
		return true
	}
	if len(e.Name) > nfs3.MaxName {
		return false
	}
	if !plus {
		return true
	}
	d.moves.RLock() // a rename would else tell the table where the entry is, and then this where it was
	found, err := d.entry(o, e.Name)
	d.moves.RUnlock()
	if err == unix.ENOENT {
		return false
	}
	if err == nil {
		e.FileID = found.Attr.FileID // the inode of getdents is another one where something is mounted
		e.Attr, e.Object = nfs3.Post(found.Attr), nfs3.PostHandle{Present: true, Handle: found.Handle}
	}
	return true
}
