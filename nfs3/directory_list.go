package nfs3

import (
	"bytes"
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// listBuffer is how much of a directory is asked for at once: arbitrary.
const listBuffer = 1 << 15

// ReadDir is the method of FS. Cookies are those of the file system below, and stay valid as long as it
// says: on Linux's own as long as the directory is there.
func (d *Directory) ReadDir(_ context.Context, c *Cred, dir Handle, from DirPosition, plus bool, each func(*DirEntry) bool) (DirEnd, error) {
	c = d.cred(c)
	o, err := d.lookDir(c, dir, mayRead)
	if err != nil {
		return DirEnd{}, err
	}
	defer o.close()
	fd, err := o.openData(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return DirEnd{}, err
	}
	defer unix.Close(fd)
	if from.Cookie != 0 {
		if _, err := unix.Seek(fd, int64(from.Cookie), unix.SEEK_SET); err != nil {
			return DirEnd{}, ErrBadCookie
		}
	}
	plus = plus && c.may(&o.attr, mayExecute)
	b := make([]byte, listBuffer)
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, b) })
		if err != nil {
			return DirEnd{}, err
		}
		if n == 0 {
			return DirEnd{EOF: true}, nil
		}
		for left := b[:n]; len(left) > 0; {
			e, size := dirent(left)
			left = left[size:]
			if d.complete(o, &e, plus) && !each(&e) {
				return DirEnd{}, nil
			}
		}
	}
}

// dirent takes an entry as getdents64 returns it: inode and cookie of 8 octets, length of 2, type,
// name.
func dirent(b []byte) (e DirEntry, size int) {
	size = int(binary.NativeEndian.Uint16(b[16:]))
	name := b[19:size]
	name = name[:bytes.IndexByte(name, 0)]
	return DirEntry{FileID: binary.NativeEndian.Uint64(b), Name: string(name), Cookie: binary.NativeEndian.Uint64(b[8:])}, size
}

// complete gives an entry its attributes and handle. It reports whether there is such an entry: it may
// have gone, or have a name that the protocol does not know.
func (d *Directory) complete(o *object, e *DirEntry, plus bool) bool {
	switch e.Name {
	case ".":
		if plus {
			e.Attr, e.Object = Post(o.attr), PostHandle{true, o.at.handle}
		}
		return true
	case "..":
		if o.at == d.table.root { // what is above it is not told
			e.FileID = o.attr.FileID
		}
		return true
	}
	if len(e.Name) > MaxName {
		return false
	}
	if !plus {
		return true
	}
	found, err := d.entry(o, e.Name)
	if err == unix.ENOENT {
		return false
	}
	if err == nil {
		e.FileID = found.Attr.FileID // the inode of getdents is another one where something is mounted
		e.Attr, e.Object = Post(found.Attr), PostHandle{true, found.Handle}
	}
	return true
}
