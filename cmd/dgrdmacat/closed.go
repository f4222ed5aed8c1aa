package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// closedAtStart reports whether an output was closed when the program began. The runtime opens
// /dev/null in its place, for reading too, which nobody does who wants to write there: so all
// data would vanish, and all be well.
func closedAtStart(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(1, 3) {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}

// closedOutput is an output that was closed.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, errors.New("standard output is closed: > /dev/null throws away what is written")
}
