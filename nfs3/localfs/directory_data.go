package localfs

import (
	"context"
	"math"

	"github.com/dgrdma/dgrdma/nfs3"
	"golang.org/x/sys/unix"
)

// Read is the method of FS.
func (d *Directory) Read(_ context.Context, c *nfs3.Cred, h nfs3.Handle, dst []byte, offset uint64) (int, bool, error) {
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
func (d *Directory) Write(_ context.Context, c *nfs3.Cred, h nfs3.Handle, data []byte, offset uint64, stable nfs3.Stable) (nfs3.Written, nfs3.WCC, error) {
	by := d.cred(c)
	o, err := d.look(h)
	if err != nil {
		return nfs3.Written{}, nfs3.WCC{}, err
	}
	defer o.close()
	if err := by.writable(&o.attr); err != nil {
		return nfs3.Written{}, nfs3.WCC{}, err
	}
	if offset > math.MaxInt64-uint64(len(data)) {
		return nfs3.Written{}, nfs3.WCC{}, nfs3.ErrFBig
	}
	fd, err := d.openWritable(o)
	if err != nil {
		return nfs3.Written{}, nfs3.WCC{}, err
	}
	defer unix.Close(fd)
	verifier := d.verifier.Load() // before the data is written: what is lost from now on changes it
	done := 0
	for done < len(data) {
		n, err := again(func() (int, error) { return unix.Pwrite(fd, data[done:], int64(offset)+int64(done)) })
		if err != nil && done == 0 {
			return nfs3.Written{}, nfs3.WCC{}, err
		}
		if err != nil {
			break // the caller writes the rest, and hears of it then
		}
		done += n
	}
	d.clearSetID(by, fd)
	if stable != nfs3.Unstable {
		stable = nfs3.FileSync
		if err := d.flush(fd); err != nil {
			return nfs3.Written{}, nfs3.WCC{}, err
		}
	}
	return nfs3.Written{Count: uint32(done), Stable: stable, Verifier: verifier}, o.after(fd), nil
}

// clearSetID gives a file that c has written into the mode that it has then: the kernel does so for ordinary users' processes only.
func (d *Directory) clearSetID(c *caller, fd int) {
	if c.root() {
		return
	}
	a, _, err := attrOf(fd, "")
	if err != nil || c.modeWritten(&a) == a.Mode {
		return
	}
	d.modes.Lock()
	defer d.modes.Unlock()
	if a, _, err = attrOf(fd, ""); err == nil { // its owner may have set another one
		unix.Fchmod(fd, c.modeWritten(&a))
	}
}

// after returns the attributes that an object has by now.
func (o *object) after(fd int) nfs3.WCC {
	a, _, err := attrOf(fd, "")
	return nfs3.WCC{After: nfs3.PostAttr{Present: err == nil, Attr: a}}
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
func (d *Directory) Commit(_ context.Context, c *nfs3.Cred, h nfs3.Handle, _ uint64, _ uint32) (uint64, nfs3.WCC, error) {
	o, err := d.look(h)
	if err != nil {
		return 0, nfs3.WCC{}, err
	}
	defer o.close()
	if err := nfs3.CheckRegular(&o.attr); err != nil {
		return 0, nfs3.WCC{}, err
	}
	fd, err := o.openData(unix.O_RDONLY)
	if err == unix.EACCES {
		fd, err = d.openWritable(o)
	}
	if err != nil {
		return 0, nfs3.WCC{}, err
	}
	defer unix.Close(fd)
	verifier := d.verifier.Load()
	if err := d.flush(fd); err != nil {
		return 0, nfs3.WCC{}, err
	}
	return verifier, o.after(fd), nil
}

// SetAttr is the method of FS.
func (d *Directory) SetAttr(_ context.Context, c *nfs3.Cred, h nfs3.Handle, set *nfs3.SetAttr, guard *nfs3.Time) (nfs3.WCC, error) {
	by := d.cred(c)
	o, err := d.look(h)
	if err != nil {
		return nfs3.WCC{}, err
	}
	defer o.close()
	lock := d.lock(o)
	lock.Lock()
	defer lock.Unlock()
	if o.attr, _, err = attrOf(o.fd, ""); err != nil {
		return nfs3.WCC{}, err
	}
	if guard != nil && *guard != o.attr.Ctime {
		return nfs3.WCC{}, nfs3.ErrNotSync
	}
	if err := by.settable(&o.attr, set); err != nil {
		return nfs3.WCC{}, err
	}
	err = d.setSynced(by, o, set)
	return o.after(o.fd), err
}

// setSynced is set of an object that was there. With SyncMetadata its attributes are on stable storage afterwards.
func (d *Directory) setSynced(c *caller, o *object, set *nfs3.SetAttr) error {
	err := d.set(c, o, set)
	if err == nil && d.sync {
		err = d.syncObject(o)
	}
	return err
}

// set sets attributes that c may set.
func (d *Directory) set(c *caller, o *object, set *nfs3.SetAttr) error {
	if set.Size != nil {
		if *set.Size > math.MaxInt64 {
			return nfs3.ErrFBig
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
		d.modes.Lock()
		err := unix.Chmod(link(o.fd), mode)
		d.modes.Unlock()
		if err != nil {
			return err
		}
	}
	if set.SetAtime != nfs3.KeepTime || set.SetMtime != nfs3.KeepTime {
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

func timespec(how nfs3.SetTime, t nfs3.Time) unix.Timespec {
	switch how {
	case nfs3.ServerTime:
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	case nfs3.ClientTime:
		return unix.NsecToTimespec(int64(t.Seconds)*1e9 + int64(min(t.Nanoseconds, 999_999_999)))
	}
	return unix.Timespec{Nsec: unix.UTIME_OMIT}
}

// syncObject has what was changed of an object on stable storage, if it is a file or a directory: others
// cannot be opened for it.
func (d *Directory) syncObject(o *object) error {
	if o.attr.Type != nfs3.TypeRegular && o.attr.Type != nfs3.TypeDirectory {
		return nil
	}
	fd, err := o.openData(unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return d.flush(fd)
}
