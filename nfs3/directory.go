package nfs3

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// DirectoryOptions are what a [Directory] can be told.
type DirectoryOptions struct {
	// SyncMetadata has each change of a directory and of attributes be on stable storage before it is
	// answered, as RFC 1813 asks for. It costs a write to the disk for each of them. Without it a crash
	// of the machine may undo those of the last seconds, as it does with local programs.
	SyncMetadata bool
}

// Directory is an [FS] that is a directory of this machine. Its methods do what they do by one or a few
// system calls, and keep nothing open.
//
// # What is outside
//
// Nothing outside of the directory is reached: names have no slash, ".." of the root is the root, and no
// symbolic link is followed. File systems that are mounted below it belong to it.
//
// # Handles
//
// A handle stands for an object by device, inode and time of birth; the Directory remembers under which
// names it was last seen, of 65536 objects. A handle is stale ([ErrStale]) if the object is not there any
// more: others have removed it, or renamed it or a directory above it. Renaming by way of the Directory
// keeps handles. What was renamed has its old handle again once it was looked up under its new name.
//
// Handles outlive the Directory: one that is opened for the same path later, as after a restart of the program, looks for the object where its
// handle was made. It finds objects that have other names by now, also those of directories above them. Stale are then those
// that were moved to another directory, are more than 9 directories below the root, are within a file system that is mounted below it, or are
// behind more than 65536 entries of directories; and all where the file system does not know times of birth.
//
// # Users
//
// For a process of the superuser, objects that are made belong to the caller, and the kernel checks
// as for him what changes directories. Whether he may read, write and change a file is decided by its
// mode alone, without access control lists. A process of an ordinary user does everything for
// that user, whatever the caller's; to give an object to others is ErrPerm.
//
// # Others
//
// Programs of this machine may change the directory at any time. A file that shrinks or vanishes below a
// read is a short read or an error. What they change between the two looks that a WCC is made of, some
// microseconds, is not told from what the caller did.
type Directory struct {
	root  int // a file descriptor
	table *placeTable
	super bool // the process may act for others
	self  Cred // of the process
	sync  bool

	verifier atomic.Uint64 // of data that is not on stable storage
	moves    sync.RWMutex  // held for a rename, so that paths lead where they did while one is followed
	searches sync.Mutex    // held for a search
	searched int           // entries that one looks at: mostSearched
	changes  [64]sync.Mutex
}

// OpenDirectory returns a directory to serve. Close gives its file descriptor back.
func OpenDirectory(path string, o *DirectoryOptions) (*Directory, error) {
	fail := func(err error) (*Directory, error) { return nil, fmt.Errorf("serve directory %s: %w", path, err) }
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return fail(err)
	}
	_, id, err := attrOf(fd, "")
	if err == nil {
		_, err = os.Lstat(link(fd))
	}
	groups, groupsErr := unix.Getgroups()
	if err == nil {
		err = groupsErr
	}
	if err != nil {
		unix.Close(fd)
		return fail(err)
	}
	d := &Directory{root: fd, searched: mostSearched, table: newPlaceTable(id), self: Cred{UID: uint32(unix.Geteuid()), GID: uint32(unix.Getegid())}}
	for _, g := range groups {
		d.self.GIDs = append(d.self.GIDs, uint32(g))
	}
	if d.super = d.self.UID == 0; d.super { // a container's may lack the capabilities for it
		d.super = d.as(&Cred{UID: 1}, func() error { return nil }) == nil
	}
	d.sync = o != nil && o.SyncMetadata
	d.verifier.Store(random())
	return d, nil
}

// Close ends the use of the directory. No method may be in work.
func (d *Directory) Close() error { return unix.Close(d.root) }

// cred returns for whom something is done.
func (d *Directory) cred(c *Cred) *Cred {
	if d.super {
		return c
	}
	return &d.self
}

// Root is the method of FS.
func (d *Directory) Root(context.Context) (Object, error) {
	a, _, err := attrOf(d.root, "")
	return Object{d.table.root.handle, a}, err
}

// GetAttr is the method of FS.
func (d *Directory) GetAttr(_ context.Context, _ *Cred, h Handle) (Attr, error) {
	o, err := d.look(h)
	if err != nil {
		return Attr{}, err
	}
	defer o.close()
	return o.attr, nil
}

// look is open for what does not rename.
func (d *Directory) look(h Handle) (*object, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	return d.open(h)
}

// lookDir is openDir for what does not rename.
func (d *Directory) lookDir(c *Cred, h Handle, bits uint32) (*object, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	return d.openDir(c, h, bits)
}

// Lookup is the method of FS.
func (d *Directory) Lookup(ctx context.Context, c *Cred, dir Handle, name string) (Object, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	o, err := d.openDir(d.cred(c), dir, mayExecute)
	if err != nil {
		return Object{}, err
	}
	defer o.close()
	switch name {
	case ".":
		return Object{dir, o.attr}, nil
	case "..":
		parent, err := d.open(d.table.parentOf(o.at))
		if err != nil {
			return Object{}, err
		}
		defer parent.close()
		return Object{parent.at.handle, parent.attr}, nil
	}
	if err := CheckName(name); err != nil {
		return Object{}, err
	}
	return d.entry(o, name)
}

// entry returns an entry of a directory that was opened, and remembers it.
func (d *Directory) entry(dir *object, name string) (Object, error) {
	a, id, err := attrOf(dir.fd, name)
	if err != nil {
		return Object{}, err
	}
	p, err := d.table.seen(id, dir.at, name)
	if err != nil {
		return Object{}, err
	}
	return Object{p.handle, a}, nil
}

// Access is the method of FS.
func (d *Directory) Access(ctx context.Context, c *Cred, h Handle, want Access) (Access, error) {
	a, err := d.GetAttr(ctx, c, h)
	if err != nil {
		return 0, err
	}
	return d.cred(c).Granted(&a, want), nil
}

// ReadLink is the method of FS.
func (d *Directory) ReadLink(_ context.Context, _ *Cred, h Handle) (string, error) {
	o, err := d.look(h)
	if err != nil {
		return "", err
	}
	defer o.close()
	if o.attr.Type != TypeSymlink {
		return "", ErrInval
	}
	var b [MaxTarget]byte
	n, err := again(func() (int, error) { return unix.Readlinkat(o.fd, "", b[:]) })
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// FSStat is the method of FS.
func (d *Directory) FSStat(_ context.Context, _ *Cred, h Handle) (FSStat, error) {
	o, err := d.look(h)
	if err != nil {
		return FSStat{}, err
	}
	defer o.close()
	var st unix.Statfs_t
	if _, err := again(func() (int, error) { return 0, unix.Fstatfs(o.fd, &st) }); err != nil {
		return FSStat{}, err
	}
	size := uint64(st.Bsize)
	return FSStat{TotalBytes: st.Blocks * size, FreeBytes: st.Bfree * size, AvailBytes: st.Bavail * size, TotalFiles: st.Files, FreeFiles: st.Ffree, AvailFiles: st.Ffree}, nil
}

// FSInfo is the method of FS.
func (d *Directory) FSInfo(_ context.Context, _ *Cred, h Handle) (FSInfo, error) {
	o, err := d.look(h)
	if err != nil {
		return FSInfo{}, err
	}
	o.close()
	return usualInfo(1<<63 - 1), nil
}

// PathConf is the method of FS.
func (d *Directory) PathConf(_ context.Context, _ *Cred, h Handle) (PathConf, error) {
	o, err := d.look(h)
	if err != nil {
		return PathConf{}, err
	}
	o.close()
	return usualPathConf, nil
}
