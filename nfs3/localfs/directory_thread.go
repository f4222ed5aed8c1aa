package localfs

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

var errActFor = errors.New("act for another user: the kernel refuses; run with CAP_SETUID and CAP_SETGID")

// as calls f in a thread that acts for c towards the kernel: it checks permissions in directories, and
// new objects belong to c. Where the process is no superuser's, all is done for its own user.
//
// The thread is that of a goroutine of its own: if it cannot go back, it ends with that.
func (d *Directory) as(c *caller, f func() error) error {
	if !d.super || c.root() {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := actFor(c)
		if err == nil {
			err = f()
		}
		if actFor(&d.self) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// actFor has the kernel check this thread's operations on files as those of c. Unlike setuid, this
// leaves the process and its other threads as they are.
func actFor(c *caller) error {
	groups := make([]int, len(c.GIDs))
	for i, g := range c.GIDs {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil {
		return errors.Join(errActFor, err)
	}
	unix.Setfsgid(int(c.GID))
	unix.Setfsuid(int(c.UID))
	gid, _ := unix.SetfsgidRetGid(-1) // changes nothing, and tells what is
	uid, _ := unix.SetfsuidRetUid(-1)
	if uint32(gid) != c.GID || uint32(uid) != c.UID {
		return errActFor
	}
	return nil
}
