package localfs

import (
	"context"
	"sync"

	"github.com/dgrdma/dgrdma/nfs3"
	"golang.org/x/sys/unix"
)

// lock returns the lock that changes of an object take: some others have the same.
func (d *Directory) lock(o *object) *sync.Mutex {
	return &d.changes[o.at.serial%uint64(len(d.changes))]
}

// change changes a directory by f, for c, and returns its attributes before and after.
func (d *Directory) change(c *nfs3.Cred, dir nfs3.Handle, f func(c *caller, o *object) error) (w nfs3.WCC, err error) {
	var s sought
	for again := true; again; again = d.found(&s, &err) {
		w, err = d.changeOnce(d.cred(c), dir, f)
	}
	return w, err
}

func (d *Directory) changeOnce(by *caller, dir nfs3.Handle, f func(c *caller, o *object) error) (nfs3.WCC, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	o, err := d.openDir(by, dir, 0)
	if err != nil {
		return nfs3.WCC{}, err
	}
	defer o.close()
	lock := d.lock(o)
	lock.Lock()
	defer lock.Unlock()
	return d.changed(o, func() error { return f(by, o) })
}

// changed is f with the attributes of a directory before and after it.
func (d *Directory) changed(o *object, f func() error) (nfs3.WCC, error) {
	before, _, err := attrOf(o.fd, "")
	if err == nil {
		err = f()
	}
	if err == nil && d.sync {
		err = d.syncObject(o)
	}
	w := o.after(o.fd)
	w.Before = nfs3.Pre(&before)
	return w, err
}

// newName returns what is wrong with the name of a new entry.
func newName(name string) error {
	if name == "." || name == ".." {
		return nfs3.ErrExist
	}
	return nfs3.CheckName(name)
}

// make makes an object by f, and gives it attributes. Mode is what it has for a moment.
func (d *Directory) make(c *nfs3.Cred, dir nfs3.Handle, name string, t nfs3.FileType, set *nfs3.SetAttr, f func(o *object, mode uint32) error) (made nfs3.Object, w nfs3.WCC, err error) {
	w, err = d.change(c, dir, func(c *caller, o *object) error {
		if err := newName(name); err != nil {
			return err
		}
		if o.depth >= d.table.above {
			return nfs3.ErrNameTooLong
		}
		want := c.created(&o.attr, t, set)
		if err := c.settableFor(&want, set); err != nil {
			return err
		}
		err := d.as(c, func() error {
			if err := f(o, want.Mode&0o700); err != nil {
				return err
			}
			err := d.made(c, o, name, t, want.Mode, set)
			if err != nil {
				flags := 0
				if t == nfs3.TypeDirectory {
					flags = unix.AT_REMOVEDIR
				}
				unix.Unlinkat(o.fd, name, flags)
				return err
			}
			made, err = d.entry(o, name)
			return err
		})
		if err == nil && want.Mode&setGID != 0 && made.Attr.Mode&setGID == 0 && t == nfs3.TypeDirectory {
			err = d.inherit(&made, want.Mode)
		}
		return err
	})
	return made, w, err
}

// inherit gives a directory the set-group-id of the one that it is in, which the kernel lets only
// callers in the group set.
func (d *Directory) inherit(made *nfs3.Object, mode uint32) error {
	o, err := d.openKnown(made.Handle)
	if err != nil {
		return err
	}
	defer o.close()
	if err := unix.Chmod(link(o.fd), mode); err != nil {
		return err
	}
	made.Attr, _, err = attrOf(o.fd, "")
	return err
}

// made gives an object that was made its attributes. Others may have put something in its place: so what
// has another type is left as it is, and the rest is done for c.
func (d *Directory) made(c *caller, dir *object, name string, t nfs3.FileType, mode uint32, set *nfs3.SetAttr) error {
	fd, err := openPath(dir.fd, name, 0)
	if err != nil {
		return err
	}
	o := &object{fd: fd}
	defer o.close()
	if o.attr, _, err = attrOf(fd, ""); err != nil {
		return err
	}
	if o.attr.Type != t {
		return nfs3.ErrExist
	}
	rest := *set
	if t != nfs3.TypeSymlink {
		rest.Mode = &mode
	} else {
		rest = nfs3.SetAttr{UID: set.UID, GID: set.GID}
	}
	if t != nfs3.TypeRegular {
		rest.Size = nil
	}
	if rest.GID == nil && c != nil && dir.attr.Mode&setGID == 0 && o.attr.GID != c.GID {
		rest.GID = &c.GID // a directory of some file systems gives its group to all
	}
	if err := d.set(c, o, &rest); err != nil {
		return err
	}
	if d.sync {
		return d.syncObject(o)
	}
	return nil
}

// Create is the method of FS. A CREATE with Exclusive keeps its verifier in the times of the file, until
// the caller sets these.
func (d *Directory) Create(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, how *nfs3.CreateHow) (nfs3.Object, nfs3.WCC, error) {
	set := how.Set
	if how.Mode == nfs3.Exclusive {
		mode := uint32(0o600)
		set = nfs3.SetAttr{Mode: &mode, SetAtime: nfs3.ClientTime, SetMtime: nfs3.ClientTime}
		set.Atime.Seconds, set.Mtime.Seconds = uint32(how.Verifier)&0x7fffffff, uint32(how.Verifier>>32)&0x7fffffff
	}
	made, w, err := d.make(c, dir, name, nfs3.TypeRegular, &set, func(o *object, mode uint32) error {
		fd, err := again(func() (int, error) {
			return unix.Openat(o.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode|0o600)
		})
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
	if nfs3.StatusOf(err) != nfs3.ErrExist || how.Mode == nfs3.Guarded || notDots(name) != nil {
		return made, w, err
	}
	made, err = d.createAgain(c, dir, name, how, &set)
	return made, w, err
}

// createAgain is CREATE of a file that is there.
func (d *Directory) createAgain(c *nfs3.Cred, dir nfs3.Handle, name string, how *nfs3.CreateHow, set *nfs3.SetAttr) (o nfs3.Object, err error) {
	var s sought
	for again := true; again; again = d.found(&s, &err) {
		o, err = d.createThere(d.cred(c), dir, name, how, set)
	}
	return o, err
}

func (d *Directory) createThere(by *caller, dir nfs3.Handle, name string, how *nfs3.CreateHow, set *nfs3.SetAttr) (nfs3.Object, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	o, err := d.openDir(by, dir, nfs3.AccessLookup)
	if err != nil {
		return nfs3.Object{}, err
	}
	defer o.close()
	found, err := d.entry(o, name)
	switch {
	case err != nil:
		return nfs3.Object{}, err
	case found.Attr.Type != nfs3.TypeRegular:
		return nfs3.Object{}, nfs3.ErrExist
	case how.Mode == nfs3.Exclusive:
		if a := &found.Attr; a.Size != 0 || a.Atime.Seconds != set.Atime.Seconds || a.Mtime.Seconds != set.Mtime.Seconds {
			return nfs3.Object{}, nfs3.ErrExist
		}
	case set.Size != nil: // the only attribute of a file that is there that CREATE sets
		file, err := d.open(found.Handle)
		if err != nil {
			return nfs3.Object{}, err
		}
		defer file.close()
		size := &nfs3.SetAttr{Size: set.Size}
		if err := by.settable(&file.attr, size); err != nil {
			return nfs3.Object{}, err
		}
		if err := d.setSynced(by, file, size); err != nil {
			return nfs3.Object{}, err
		}
		found.Attr, _, err = attrOf(file.fd, "")
		return found, err
	}
	return found, nil
}

// Mkdir is the method of FS.
func (d *Directory) Mkdir(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, set *nfs3.SetAttr) (nfs3.Object, nfs3.WCC, error) {
	return d.make(c, dir, name, nfs3.TypeDirectory, set, func(o *object, mode uint32) error {
		return unix.Mkdirat(o.fd, name, mode)
	})
}

// Symlink is the method of FS.
func (d *Directory) Symlink(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name, target string, set *nfs3.SetAttr) (nfs3.Object, nfs3.WCC, error) {
	return d.make(c, dir, name, nfs3.TypeSymlink, set, func(o *object, _ uint32) error {
		return unix.Symlinkat(target, o.fd, name)
	})
}

// Mknod is the method of FS.
func (d *Directory) Mknod(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string, node *nfs3.NodeSpec) (nfs3.Object, nfs3.WCC, error) {
	kinds := map[nfs3.FileType]uint32{nfs3.TypeBlock: unix.S_IFBLK, nfs3.TypeChar: unix.S_IFCHR, nfs3.TypeSocket: unix.S_IFSOCK, nfs3.TypeFIFO: unix.S_IFIFO}
	kind, ok := kinds[node.Type]
	if !ok {
		return nfs3.Object{}, nfs3.WCC{}, nfs3.ErrBadType
	}
	device := 0
	if node.Type == nfs3.TypeBlock || node.Type == nfs3.TypeChar {
		if !d.cred(c).root() {
			return nfs3.Object{}, nfs3.WCC{}, nfs3.ErrPerm
		}
		device = int(unix.Mkdev(node.Major, node.Minor))
	}
	return d.make(c, dir, name, node.Type, &node.Set, func(o *object, mode uint32) error {
		return unix.Mknodat(o.fd, name, kind|mode, device)
	})
}

// Remove is the method of FS.
func (d *Directory) Remove(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.WCC, error) {
	return d.unlink(c, dir, name, 0)
}

// Rmdir is the method of FS.
func (d *Directory) Rmdir(_ context.Context, c *nfs3.Cred, dir nfs3.Handle, name string) (nfs3.WCC, error) {
	return d.unlink(c, dir, name, unix.AT_REMOVEDIR)
}

func (d *Directory) unlink(c *nfs3.Cred, dir nfs3.Handle, name string, flags int) (nfs3.WCC, error) {
	return d.change(c, dir, func(c *caller, o *object) error {
		if err := notDots(name); err != nil {
			return err
		}
		if err := nfs3.CheckName(name); err != nil {
			return err
		}
		return d.as(c, func() error { return unix.Unlinkat(o.fd, name, flags) })
	})
}

// Rename is the method of FS.
func (d *Directory) Rename(_ context.Context, c *nfs3.Cred, from nfs3.Handle, name string, to nfs3.Handle, newName string) (wf, wt nfs3.WCC, err error) {
	for _, name := range []string{name, newName} {
		if err := notDots(name); err != nil {
			return wf, wt, err
		}
		if err := nfs3.CheckName(name); err != nil {
			return wf, wt, err
		}
	}
	var s sought
	for again := true; again; again = d.found(&s, &err) {
		wf, wt, err = d.rename(d.cred(c), from, name, to, newName)
	}
	return wf, wt, err
}

func (d *Directory) rename(by *caller, from nfs3.Handle, name string, to nfs3.Handle, newName string) (wf, wt nfs3.WCC, err error) {
	d.moves.Lock() // which no change of a directory holds at the same time
	defer d.moves.Unlock()
	a, err := d.openDir(by, from, 0)
	if err != nil {
		return wf, wt, err
	}
	defer a.close()
	b, err := d.openDir(by, to, 0)
	if err != nil {
		return wf, wt, err
	}
	defer b.close()
	if b.depth >= d.table.above {
		return wf, wt, nfs3.ErrNameTooLong
	}
	wf, err = d.changed(a, func() (err error) {
		wt, err = d.changed(b, func() error {
			return d.as(by, func() error { return unix.Renameat(a.fd, name, b.fd, newName) })
		})
		return err
	})
	if err == nil {
		d.entry(b, newName) // its handle, and those below it, stay valid
	}
	return wf, wt, err
}

// Link is the method of FS.
func (d *Directory) Link(_ context.Context, c *nfs3.Cred, h, dir nfs3.Handle, name string) (after nfs3.PostAttr, w nfs3.WCC, err error) {
	if err := newName(name); err != nil {
		return after, w, err
	}
	w, err = d.change(c, dir, func(c *caller, to *object) error {
		o, err := d.open(h)
		if err != nil {
			return err
		}
		defer o.close()
		if o.attr.Type == nfs3.TypeDirectory {
			return nfs3.ErrIsDir
		}
		if to.depth >= d.table.above {
			return nfs3.ErrNameTooLong
		}
		err = d.as(c, func() error {
			return unix.Linkat(unix.AT_FDCWD, link(o.fd), to.fd, name, unix.AT_SYMLINK_FOLLOW)
		})
		if err == nil {
			d.entry(to, name) // its handle stays valid if the name is removed under which it was seen before
		}
		after = o.after(o.fd).After
		return err
	})
	return after, w, err
}
