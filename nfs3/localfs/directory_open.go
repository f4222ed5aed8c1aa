package localfs

import (
	"strconv"

	"github.com/dgrdma/dgrdma/nfs3"
	"golang.org/x/sys/unix"
)

// object is an object that was opened by its handle, for what its path names only (O_PATH).
type object struct {
	fd    int
	at    *place
	depth int // how many directories are above it
	attr  nfs3.Attr
}

func (o *object) close() { unix.Close(o.fd) }

// link is the name under which the kernel has the object of a file descriptor.
func link(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// open opens the object of a handle. It goes from the root by one name after the other, follows no
// symbolic link, and what it arrives at must be the object that had the handle. So nothing outside of the
// root is opened, whatever others do to the tree, and whatever a handle says. Where that object is not there, the error is a lostError.
func (d *Directory) open(h nfs3.Handle) (*object, error) {
	o, err := d.openKnown(h)
	if err == nfs3.ErrStale {
		err = &lostError{h}
	}
	return o, err
}

// openKnown is open that says ErrStale.
func (d *Directory) openKnown(h nfs3.Handle) (*object, error) {
	id, err := identityOf(h)
	if err != nil {
		return nil, err
	}
	at, names, err := d.table.find(id)
	if err != nil {
		return nil, err
	}
	fd, err := again(func() (int, error) { return unix.Dup(d.root) })
	for i := 0; err == nil && i < len(names); i++ {
		flags := unix.O_DIRECTORY
		if i == len(names)-1 {
			flags = 0
		}
		fd, err = step(fd, names[i], flags)
	}
	if err != nil {
		return nil, gone(err)
	}
	o := &object{fd: fd, at: at, depth: len(names)}
	if o.attr, id, err = attrOf(fd, ""); err == nil && id != at.id {
		err = nfs3.ErrStale
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// step opens an entry of the directory fd, which it closes.
func step(fd int, name string, flags int) (int, error) {
	defer unix.Close(fd)
	return openPath(fd, name, flags)
}

func openPath(fd int, name string, flags int) (int, error) {
	return again(func() (int, error) { return unix.Openat(fd, name, flags|unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) })
}

// gone returns ErrStale for an error that says that a path leads to nothing, or not to what it did.
func gone(err error) error {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return nfs3.ErrStale
	}
	return err
}

// openDir opens a directory of which the mode grants rights to c.
func (d *Directory) openDir(c *caller, h nfs3.Handle, rights nfs3.Access) (*object, error) {
	o, err := d.open(h)
	if err != nil {
		return nil, err
	}
	if err := c.directory(&o.attr, rights); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// openData opens the data of an object that was opened for its path.
func (o *object) openData(flags int) (int, error) {
	return again(func() (int, error) { return unix.Open(link(o.fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0) })
}

// openWritable opens a file that c may write into. A file of an ordinary user's own may have a mode
// that forbids it by now; a program that has it open could write all the same.
func (d *Directory) openWritable(o *object) (int, error) {
	fd, err := o.openData(unix.O_WRONLY)
	if err != unix.EACCES || o.attr.UID != uint32(unix.Geteuid()) {
		return fd, err
	}
	d.modes.Lock()
	defer d.modes.Unlock()
	a, _, err := attrOf(o.fd, "") // it may have another mode by now, which is to stay
	if err != nil {
		return -1, err
	}
	if a.Mode&0o200 != 0 {
		return o.openData(unix.O_WRONLY)
	}
	if err := unix.Chmod(link(o.fd), a.Mode|0o200); err != nil {
		return -1, err
	}
	defer unix.Chmod(link(o.fd), a.Mode)
	return o.openData(unix.O_WRONLY)
}

// again calls f again while signals interrupt it.
func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); err != unix.EINTR {
			return n, err
		}
	}
}

// attrOf returns the attributes and the identity of an entry of the directory fd, or of fd itself.
func attrOf(fd int, name string) (nfs3.Attr, identity, error) {
	var st unix.Statx_t
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	if err := unix.Statx(fd, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return nfs3.Attr{}, identity{}, err
	}
	a := nfs3.Attr{
		Type: typeOf(uint32(st.Mode)), Mode: uint32(st.Mode) & 0o7777, Links: st.Nlink, UID: st.Uid, GID: st.Gid, Size: st.Size, Used: st.Blocks * 512,
		Major: st.Rdev_major, Minor: st.Rdev_minor, FSID: uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), FileID: st.Ino,
		Atime: timeOf(st.Atime), Mtime: timeOf(st.Mtime), Ctime: timeOf(st.Ctime),
	}
	id := identity{dev: a.FSID, inode: a.FileID}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.born = timeOf(st.Btime)
	}
	return a, id, nil
}

func timeOf(t unix.StatxTimestamp) nfs3.Time {
	return nfs3.Time{Seconds: uint32(max(t.Sec, 0)), Nanoseconds: t.Nsec}
}

func typeOf(mode uint32) nfs3.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return nfs3.TypeDirectory
	case unix.S_IFBLK:
		return nfs3.TypeBlock
	case unix.S_IFCHR:
		return nfs3.TypeChar
	case unix.S_IFLNK:
		return nfs3.TypeSymlink
	case unix.S_IFSOCK:
		return nfs3.TypeSocket
	case unix.S_IFIFO:
		return nfs3.TypeFIFO
	}
	return nfs3.TypeRegular
}
