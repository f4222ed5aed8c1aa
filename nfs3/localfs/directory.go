package localfs

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/nfs3"
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
// more. Renaming and removing names by way of the Directory keeps the handles of what is still there.
//
// An object that is not where it was last seen, since others have renamed it, and one that the Directory has not seen, as after a restart
// of the program, is looked for in the directory in which its
// handle was made. It is found there under any name, also where directories above it have other names by now. Stale are then those
// that were moved to another directory, are more than 9 directories below the root, are within a file system that is mounted below it, or are
// behind more than 65536 entries of directories; and all where the file system does not know times of birth. What is stale has its old handle
// again once it was looked up under its new name. So has a file of several names, if those are gone under which it was made and last seen.
//
// Objects that are more than 1024 directories below the root cannot be reached: [ErrNameTooLong].
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
	super bool   // the process may act for others
	self  caller // of the process
	sync  bool

	verifier atomic.Uint64 // of data that is not on stable storage
	moves    sync.RWMutex  // held for a rename, so that paths lead where they did while one is followed
	searches sync.Mutex    // held for a search
	waiting  atomic.Int32  // searches, also the one that goes on
	searched int           // entries that one looks at: mostSearched
	changes  [64]sync.Mutex
	modes    sync.Mutex // held while a mode is set by what it was
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
	d := &Directory{root: fd, searched: mostSearched, table: newPlaceTable(id), self: caller{UID: uint32(unix.Geteuid()), GID: uint32(unix.Getegid())}}
	for _, g := range groups {
		d.self.GIDs = append(d.self.GIDs, uint32(g))
	}
	if d.super = d.self.UID == 0; d.super { // a container's may lack the capabilities for it
		d.super = d.as(&caller{UID: 1}, func() error { return nil }) == nil
	}
	d.sync = o != nil && o.SyncMetadata
	d.verifier.Store(random())
	return d, nil
}

// Close ends the use of the directory. No method may be in work.
func (d *Directory) Close() error { return unix.Close(d.root) }

// cred returns for whom something is done.
func (d *Directory) cred(c *nfs3.Cred) *caller {
	if d.super {
		return (*caller)(c)
	}
	return &d.self
}

// Root is the method of FS.
func (d *Directory) Root(context.Context) (nfs3.Object, error) {
	a, _, err := attrOf(d.root, "")
	return nfs3.Object{Handle: d.table.root.handle, Attr: a}, err
}

// GetAttr is the method of FS.
func (d *Directory) GetAttr(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.Attr, error) {
	o, err := d.look(h)
	if err != nil {
		return nfs3.Attr{}, err
	}
	defer o.close()
	return o.attr, nil
}

// look is open for what does not rename.
func (d *Directory) look(h nfs3.Handle) (o *object, err error) {
	var s sought
	for again := true; again; again = d.found(&s, &err) {
		d.moves.RLock()
		o, err = d.open(h)
		d.moves.RUnlock()
	}
	return o, err
}

// lookDir is openDir for what does not rename.
func (d *Directory) lookDir(c *caller, h nfs3.Handle, rights nfs3.Access) (o *object, err error) {
	var s sought
	for again := true; again; again = d.found(&s, &err) {
		d.moves.RLock()
		o, err = d.openDir(c, h, rights)
		d.moves.RUnlock()
	}
	return o, err
}

// Lookup is the method of FS.
func (d *Directory) Lookup(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (o nfs3.Object, err error) {
	var s sought
	for again := true; again; again = d.found(&s, &err) {
		o, err = d.lookup(d.cred(c), dir, name)
	}
	return o, err
}

func (d *Directory) lookup(c *caller, dir nfs3.Handle, name string) (nfs3.Object, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	o, err := d.openDir(c, dir, nfs3.AccessLookup)
	if err != nil {
		return nfs3.Object{}, err
	}
	defer o.close()
	switch name {
	case ".":
		return nfs3.Object{Handle: dir, Attr: o.attr}, nil
	case "..":
		parent, err := d.open(d.table.parentOf(o.at))
		if err != nil {
			return nfs3.Object{}, err
		}
		defer parent.close()
		return nfs3.Object{Handle: parent.at.handle, Attr: parent.attr}, nil
	}
	if err := nfs3.CheckName(name); err != nil {
		return nfs3.Object{}, err
	}
	return d.entry(o, name)
}

// entry returns an entry of a directory that was opened, and remembers it.
func (d *Directory) entry(dir *object, name string) (nfs3.Object, error) {
	a, id, err := attrOf(dir.fd, name)
	if err != nil {
		return nfs3.Object{}, err
	}
	p, err := d.table.seen(id, dir.at, name)
	if err != nil {
		return nfs3.Object{}, err
	}
	return nfs3.Object{Handle: p.handle, Attr: a}, nil
}

// Access is the method of FS.
func (d *Directory) Access(ctx context.Context, c *nfs3.Cred, h nfs3.Handle, want nfs3.Access) (nfs3.Access, error) {
	a, err := d.GetAttr(ctx, c, h)
	if err != nil {
		return 0, err
	}
	return d.cred(c).granted(&a, want), nil
}

// ReadLink is the method of FS.
func (d *Directory) ReadLink(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (string, error) {
	o, err := d.look(h)
	if err != nil {
		return "", err
	}
	defer o.close()
	if o.attr.Type != nfs3.TypeSymlink {
		return "", nfs3.ErrInval
	}
	var b [nfs3.MaxTarget]byte
	n, err := again(func() (int, error) { return unix.Readlinkat(o.fd, "", b[:]) })
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// FSStat is the method of FS.
func (d *Directory) FSStat(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.FSStat, error) {
	o, err := d.look(h)
	if err != nil {
		return nfs3.FSStat{}, err
	}
	defer o.close()
	var st unix.Statfs_t
	if _, err := again(func() (int, error) { return 0, unix.Fstatfs(o.fd, &st) }); err != nil {
		return nfs3.FSStat{}, err
	}
	size := uint64(st.Bsize)
	return nfs3.FSStat{TotalBytes: st.Blocks * size, FreeBytes: st.Bfree * size, AvailBytes: st.Bavail * size, TotalFiles: st.Files, FreeFiles: st.Ffree, AvailFiles: st.Ffree}, nil
}

// FSInfo is the method of FS.
func (d *Directory) FSInfo(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.FSInfo, error) {
	o, err := d.look(h)
	if err != nil {
		return nfs3.FSInfo{}, err
	}
	o.close()
	return nfs3.FSInfo{Properties: properties}, nil
}

// PathConf is the method of FS.
func (d *Directory) PathConf(_ context.Context, _ *nfs3.Cred, h nfs3.Handle) (nfs3.PathConf, error) {
	o, err := d.look(h)
	if err != nil {
		return nfs3.PathConf{}, err
	}
	o.close()
	return usualPathConf, nil
}
