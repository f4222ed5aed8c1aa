package nfs3

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
)

// lock returns the lock that changes of an object take: some others have the same.
func (d *Directory) lock(o *object) *sync.Mutex {
	return &d.changes[o.at.serial%uint64(len(d.changes))]
}

// change changes a directory by f, for c, and returns its attributes before and after.
func (d *Directory) change(c *Cred, dir Handle, f func(c *Cred, o *object) error) (WCC, error) {
	c = d.cred(c)
	d.moves.RLock()
	defer d.moves.RUnlock()
	o, err := d.openDir(c, dir, 0)
	if err != nil {
		return WCC{}, err
	}
	defer o.close()
	lock := d.lock(o)
	lock.Lock()
	defer lock.Unlock()
	return d.changed(o, func() error { return f(c, o) })
}

// changed is f with the attributes of a directory before and after it.
func (d *Directory) changed(o *object, f func() error) (WCC, error) {
	before, _, err := attrOf(o.fd, "")
	if err == nil {
		err = f()
	}
	if err == nil && d.sync {
		err = d.syncObject(o)
	}
	w := o.after(o.fd)
	w.Before = Pre(&before)
	return w, err
}

// newName returns what is wrong with the name of a new entry.
func newName(name string) error {
	if name == "." || name == ".." {
		return ErrExist
	}
	return CheckName(name)
}

// make makes an object by f, and gives it attributes. Mode is what it has for a moment.
func (d *Directory) make(c *Cred, dir Handle, name string, t FileType, set *SetAttr, f func(o *object, mode uint32) error) (made Object, w WCC, err error) {
	w, err = d.change(c, dir, func(c *Cred, o *object) error {
		if err := newName(name); err != nil {
			return err
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
				if t == TypeDirectory {
					flags = unix.AT_REMOVEDIR
				}
				unix.Unlinkat(o.fd, name, flags)
				return err
			}
			made, err = d.entry(o, name)
			return err
		})
		if err == nil && want.Mode&setGID != 0 && made.Attr.Mode&setGID == 0 && t == TypeDirectory {
			err = d.inherit(&made, want.Mode)
		}
		return err
	})
	return made, w, err
}

// inherit gives a directory the set-group-id of the one that it is in, which the kernel lets only
// callers in the group set.
func (d *Directory) inherit(made *Object, mode uint32) error {
	o, err := d.open(made.Handle)
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
func (d *Directory) made(c *Cred, dir *object, name string, t FileType, mode uint32, set *SetAttr) error {
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
		return ErrExist
	}
	rest := *set
	if t != TypeSymlink {
		rest.Mode = &mode
	} else {
		rest = SetAttr{UID: set.UID, GID: set.GID}
	}
	if t != TypeRegular {
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
func (d *Directory) Create(_ context.Context, c *Cred, dir Handle, name string, how *CreateHow) (Object, WCC, error) {
	set := how.Set
	if how.Mode == Exclusive {
		mode := uint32(0o600)
		set = SetAttr{Mode: &mode, SetAtime: ClientTime, SetMtime: ClientTime}
		set.Atime.Seconds, set.Mtime.Seconds = uint32(how.Verifier)&0x7fffffff, uint32(how.Verifier>>32)&0x7fffffff
	}
	made, w, err := d.make(c, dir, name, TypeRegular, &set, func(o *object, mode uint32) error {
		fd, err := again(func() (int, error) {
			return unix.Openat(o.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode|0o600)
		})
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
	if StatusOf(err) != ErrExist || how.Mode == Guarded || notDots(name) != nil {
		return made, w, err
	}
	made, err = d.createAgain(c, dir, name, how, &set)
	return made, w, err
}

// createAgain is CREATE of a file that is there.
func (d *Directory) createAgain(c *Cred, dir Handle, name string, how *CreateHow, set *SetAttr) (Object, error) {
	d.moves.RLock()
	defer d.moves.RUnlock()
	c = d.cred(c)
	o, err := d.openDir(c, dir, mayExecute)
	if err != nil {
		return Object{}, err
	}
	defer o.close()
	found, err := d.entry(o, name)
	switch {
	case err != nil:
		return Object{}, err
	case found.Attr.Type != TypeRegular:
		return Object{}, ErrExist
	case how.Mode == Exclusive:
		if a := &found.Attr; a.Size != 0 || a.Atime.Seconds != set.Atime.Seconds || a.Mtime.Seconds != set.Mtime.Seconds {
			return Object{}, ErrExist
		}
	case set.Size != nil: // the only attribute of a file that is there that CREATE sets
		file, err := d.open(found.Handle)
		if err != nil {
			return Object{}, err
		}
		defer file.close()
		size := &SetAttr{Size: set.Size}
		if err := c.settable(&file.attr, size); err != nil {
			return Object{}, err
		}
		if err := d.set(c, file, size); err != nil {
			return Object{}, err
		}
		found.Attr, _, err = attrOf(file.fd, "")
		return found, err
	}
	return found, nil
}

// Mkdir is the method of FS.
func (d *Directory) Mkdir(_ context.Context, c *Cred, dir Handle, name string, set *SetAttr) (Object, WCC, error) {
	return d.make(c, dir, name, TypeDirectory, set, func(o *object, mode uint32) error {
		return unix.Mkdirat(o.fd, name, mode)
	})
}

// Symlink is the method of FS.
func (d *Directory) Symlink(_ context.Context, c *Cred, dir Handle, name, target string, set *SetAttr) (Object, WCC, error) {
	return d.make(c, dir, name, TypeSymlink, set, func(o *object, _ uint32) error {
		return unix.Symlinkat(target, o.fd, name)
	})
}

// Mknod is the method of FS.
func (d *Directory) Mknod(_ context.Context, c *Cred, dir Handle, name string, node *NodeSpec) (Object, WCC, error) {
	kinds := map[FileType]uint32{TypeBlock: unix.S_IFBLK, TypeChar: unix.S_IFCHR, TypeSocket: unix.S_IFSOCK, TypeFIFO: unix.S_IFIFO}
	kind, ok := kinds[node.Type]
	if !ok {
		return Object{}, WCC{}, ErrBadType
	}
	device := 0
	if node.Type.device() {
		if !d.cred(c).root() {
			return Object{}, WCC{}, ErrPerm
		}
		device = int(unix.Mkdev(node.Major, node.Minor))
	}
	return d.make(c, dir, name, node.Type, &node.Set, func(o *object, mode uint32) error {
		return unix.Mknodat(o.fd, name, kind|mode, device)
	})
}

// Remove is the method of FS.
func (d *Directory) Remove(_ context.Context, c *Cred, dir Handle, name string) (WCC, error) {
	return d.unlink(c, dir, name, 0)
}

// Rmdir is the method of FS.
func (d *Directory) Rmdir(_ context.Context, c *Cred, dir Handle, name string) (WCC, error) {
	return d.unlink(c, dir, name, unix.AT_REMOVEDIR)
}

func (d *Directory) unlink(c *Cred, dir Handle, name string, flags int) (WCC, error) {
	return d.change(c, dir, func(c *Cred, o *object) error {
		if err := notDots(name); err != nil {
			return err
		}
		if err := CheckName(name); err != nil {
			return err
		}
		return d.as(c, func() error { return unix.Unlinkat(o.fd, name, flags) })
	})
}

// Rename is the method of FS.
func (d *Directory) Rename(_ context.Context, c *Cred, from Handle, name string, to Handle, newName string) (wf, wt WCC, err error) {
	for _, name := range []string{name, newName} {
		if err := notDots(name); err != nil {
			return wf, wt, err
		}
		if err := CheckName(name); err != nil {
			return wf, wt, err
		}
	}
	c = d.cred(c)
	d.moves.Lock() // which no change of a directory holds at the same time
	defer d.moves.Unlock()
	a, err := d.openDir(c, from, 0)
	if err != nil {
		return wf, wt, err
	}
	defer a.close()
	b, err := d.openDir(c, to, 0)
	if err != nil {
		return wf, wt, err
	}
	defer b.close()
	wf, err = d.changed(a, func() (err error) {
		wt, err = d.changed(b, func() error {
			return d.as(c, func() error { return unix.Renameat(a.fd, name, b.fd, newName) })
		})
		return err
	})
	if err == nil {
		d.entry(b, newName) // its handle, and those below it, stay valid
	}
	return wf, wt, err
}

// Link is the method of FS.
func (d *Directory) Link(_ context.Context, c *Cred, h, dir Handle, name string) (after PostAttr, w WCC, err error) {
	if err := newName(name); err != nil {
		return after, w, err
	}
	w, err = d.change(c, dir, func(c *Cred, to *object) error {
		o, err := d.open(h)
		if err != nil {
			return err
		}
		defer o.close()
		if o.attr.Type == TypeDirectory {
			return ErrIsDir
		}
		err = d.as(c, func() error {
			return unix.Linkat(unix.AT_FDCWD, link(o.fd), to.fd, name, unix.AT_SYMLINK_FOLLOW)
		})
		after = o.after(o.fd).After
		return err
	})
	return after, w, err
}
