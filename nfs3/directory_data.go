package nfs3

import (
	"context"
	"math"

	"golang.org/x/sys/unix"
)

// Read is the method of FS.
func (d *Directory) Read(_ context.Context, c *Cred, h Handle, dst []byte, offset uint64) (int, bool, error) {
	o, err := d.look(h)
	if err != nil {
		return 0, false, err
	}
	defer o.close()
	if err := d.cred(c).readable(&o.attr); err != nil {
		return 0, false, err
	}
	fd, err := o.openData(unix.O_RDONLY)
	if err != nil {
		return 0, false, err
	}
	defer unix.Close(fd)
	if offset >= math.MaxInt64 {
		return 0, true, nil
	}
	dst = dst[:min(uint64(len(dst)), math.MaxInt64-offset)]
	done := 0
	for done < len(dst) {
		n, err := again(func() (int, error) { return unix.Pread(fd, dst[done:], int64(offset)+int64(done)) })
		if err != nil {
			return 0, false, err
		}
		if n == 0 {
			return done, true, nil
		}
		done += n
	}
	return done, offset+uint64(done) >= o.attr.Size, nil
}

// Write is the method of FS.
func (d *Directory) Write(_ context.Context, c *Cred, h Handle, data []byte, offset uint64, stable Stable) (Written, WCC, error) {
	c = d.cred(c)
	o, err := d.look(h)
	if err != nil {
		return Written{}, WCC{}, err
	}
	defer o.close()
	if err := c.writable(&o.attr); err != nil {
		return Written{}, WCC{}, err
	}
	if offset > math.MaxInt64-uint64(len(data)) {
		return Written{}, WCC{}, ErrFBig
	}
	fd, err := d.openWritable(o)
	if err != nil {
		return Written{}, WCC{}, err
	}
	defer unix.Close(fd)
	verifier := d.verifier.Load() // before the data is written: what is lost from now on changes it
	done := 0
	for done < len(data) {
		n, err := again(func() (int, error) { return unix.Pwrite(fd, data[done:], int64(offset)+int64(done)) })
		if err != nil && done == 0 {
			return Written{}, WCC{}, err
		}
		if err != nil {
			break // the caller writes the rest, and hears of it then
		}
		done += n
	}
	if mode := c.modeWritten(&o.attr); mode != o.attr.Mode { // the kernel does so for ordinary users' processes only
		unix.Fchmod(fd, mode)
	}
	if stable != Unstable {
		stable = FileSync
		if err := d.flush(fd); err != nil {
			return Written{}, WCC{}, err
		}
	}
	return Written{uint32(done), stable, verifier}, o.after(fd), nil
}

// after returns the attributes that an object has by now.
func (o *object) after(fd int) WCC {
	a, _, err := attrOf(fd, "")
	return WCC{After: PostAttr{err == nil, a}}
}

// flush has the data and attributes of a file on stable storage. If it fails, the kernel may have
// dropped data that was written as Unstable: the verifier tells all clients to write theirs again.
func (d *Directory) flush(fd int) error {
	_, err := again(func() (int, error) { return 0, unix.Fsync(fd) })
	if err != nil {
		d.verifier.Store(random())
	}
	return err
}

// Commit is the method of FS. It flushes all of the file, and its name if SyncMetadata is set.
func (d *Directory) Commit(_ context.Context, c *Cred, h Handle, _ uint64, _ uint32) (uint64, WCC, error) {
	o, err := d.look(h)
	if err != nil {
		return 0, WCC{}, err
	}
	defer o.close()
	if err := regular(&o.attr); err != nil {
		return 0, WCC{}, err
	}
	fd, err := o.openData(unix.O_RDONLY)
	if err == unix.EACCES {
		fd, err = d.openWritable(o)
	}
	if err != nil {
		return 0, WCC{}, err
	}
	defer unix.Close(fd)
	verifier := d.verifier.Load()
	if err := d.flush(fd); err != nil {
		return 0, WCC{}, err
	}
	return verifier, o.after(fd), nil
}

// SetAttr is the method of FS.
func (d *Directory) SetAttr(_ context.Context, c *Cred, h Handle, set *SetAttr, guard *Time) (WCC, error) {
	c = d.cred(c)
	o, err := d.look(h)
	if err != nil {
		return WCC{}, err
	}
	defer o.close()
	lock := d.lock(o)
	lock.Lock()
	defer lock.Unlock()
	if o.attr, _, err = attrOf(o.fd, ""); err != nil {
		return WCC{}, err
	}
	if guard != nil && *guard != o.attr.Ctime {
		return WCC{}, ErrNotSync
	}
	if err := c.settable(&o.attr, set); err != nil {
		return WCC{}, err
	}
	err = d.set(c, o, set)
	if err == nil && d.sync {
		err = d.syncObject(o)
	}
	return o.after(o.fd), err
}

// set sets attributes that c may set.
func (d *Directory) set(c *Cred, o *object, set *SetAttr) error {
	if set.Size != nil {
		if *set.Size > math.MaxInt64 {
			return ErrFBig
		}
		fd, err := d.openWritable(o)
		if err != nil {
			return err
		}
		_, err = again(func() (int, error) { return 0, unix.Ftruncate(fd, int64(*set.Size)) })
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	mode := c.modeAfter(&o.attr, set)
	if set.UID != nil || set.GID != nil {
		if err := unix.Fchownat(o.fd, "", idOr(set.UID), idOr(set.GID), unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if set.Mode != nil || mode != o.attr.Mode {
		if err := unix.Chmod(link(o.fd), mode); err != nil {
			return err
		}
	}
	if set.SetAtime != KeepTime || set.SetMtime != KeepTime {
		times := []unix.Timespec{timespec(set.SetAtime, set.Atime), timespec(set.SetMtime, set.Mtime)}
		return unix.UtimesNanoAt(unix.AT_FDCWD, link(o.fd), times, 0)
	}
	return nil
}

// idOr returns an id to set, or what keeps it.
func idOr(id *uint32) int {
	if id == nil {
		return -1
	}
	return int(*id)
}

func timespec(how SetTime, t Time) unix.Timespec {
	switch how {
	case ServerTime:
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	case ClientTime:
		return unix.NsecToTimespec(int64(t.Seconds)*1e9 + int64(min(t.Nanoseconds, 999_999_999)))
	}
	return unix.Timespec{Nsec: unix.UTIME_OMIT}
}

// syncObject has what was changed of an object on stable storage, if it is a file or a directory: others
// cannot be opened for it.
func (d *Directory) syncObject(o *object) error {
	if o.attr.Type != TypeRegular && o.attr.Type != TypeDirectory {
		return nil
	}
	fd, err := o.openData(unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return d.flush(fd)
}
