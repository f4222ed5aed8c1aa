package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/link/stream"
	"github.com/dgrdma/dgrdma/url"
)

// urlFile is --url-file, in which scripts find the complete string of a server. It is there
// while the endpoint is open: who waits for it never gets the string of an earlier run.
type urlFile struct {
	fileFlag
	mode    fs.FileMode // of the one that was there; 0: none was
	empty   bool        // was it, so it is somebody's, as mktemp makes one, and no earlier run's
	written string
	held    *os.File // what was written, with a lock that says that its endpoint is open
}

func (u *urlFile) register(fs *flag.FlagSet, when string) {
	fs.Var(u, "url-file", when+"write the complete URL to this `file`, which is there while the endpoint is open; one that was there has to be empty, and is so again at the end, or have the URL of a server that runs no more")
}

func (u *urlFile) given() bool { return u.fileFlag != "" }

// begin removes what an earlier run left.
func (u *urlFile) begin() error {
	if !u.given() {
		return nil
	}
	info, err := u.replaceable()
	if info == nil || err != nil {
		return err
	}
	u.mode, u.empty = info.Mode().Perm(), info.Size() == 0
	return u.clear()
}

// replaceable returns what is to be replaced, if there is something, and refuses a file that
// holds anything but an endpoint string: it is somebody's whom a slip of the pen would cost it.
func (u *urlFile) replaceable() (fs.FileInfo, error) {
	name := u.String()
	if err := stream.CheckFile(name, true); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil // a FIFO or a device takes it as it is
	}
	if err != nil {
		return nil, err
	}
	text, err := u.read()
	if err != nil {
		return nil, err
	}
	if text == "" {
		return info, nil
	}
	if u.isHeld() {
		return nil, fmt.Errorf("--url-file %s: the server whose URL is in it still runs, so it is not replaced: name another file, or end that server first", name)
	}
	text = strings.TrimSpace(text)
	if there, err := url.Parse(text); (err != nil || !there.Complete()) && !isTCPServer(text) {
		return nil, fmt.Errorf("--url-file %s: what is in it is no endpoint string, so it is not replaced: name another file, or remove this one", name)
	}
	return info, nil
}

// isHeld reports whether a server that runs has written the file: the lock of one that was killed is gone. Where the file
// system has no locks no file is held.
func (u *urlFile) isHeld() bool {
	f, err := os.Open(u.String())
	if err != nil {
		return false
	}
	defer f.Close()
	onDescriptor(f, func(fd int) { err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	return err == unix.EWOULDBLOCK
}

// hold has other servers leave the file alone until end. What is no regular file has no lock: the reader of a FIFO waits for its
// end.
func (u *urlFile) hold(s stream.Sink) {
	f, ok := s.(syscall.Conn)
	if !ok {
		return
	}
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	c.Control(func(fd uintptr) {
		var is unix.Stat_t
		if unix.Fstat(int(fd), &is) != nil || is.Mode&unix.S_IFMT != unix.S_IFREG || unix.Flock(int(fd), unix.LOCK_SH|unix.LOCK_NB) != nil {
			return
		}
		// The lock lasts as long as one of the descriptors.
		if second, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			u.held = os.NewFile(uintptr(second), u.String())
		}
	})
}

// longestURL is more than any endpoint string has.
const longestURL = 4096

func (u *urlFile) read() (string, error) {
	f, err := os.Open(u.String())
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, longestURL))
	return string(b), err
}

// clear removes the file. One that was empty when we came is empty again, and what a symbolic
// link points to is emptied, so that the link goes on pointing to something.
func (u *urlFile) clear() error {
	name := u.String()
	if u.empty {
		return os.Truncate(name, 0)
	}
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return os.Truncate(name, 0)
	}
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write writes the string of the endpoint that is open now, if the flag was given.
func (u *urlFile) write(endpoint string) error {
	if !u.given() {
		return nil
	}
	if _, err := u.replaceable(); err != nil {
		return err // it came meanwhile
	}
	s, err := stream.CreateFile(u.String(), true)
	if err != nil {
		return err
	}
	defer s.Discard()
	if f, ok := s.(interface{ Chmod(fs.FileMode) error }); ok && u.mode != 0 {
		if err := f.Chmod(u.mode); err != nil {
			return err
		}
	}
	text := endpoint + "\n"
	if _, err := io.WriteString(s, text); err != nil {
		return err
	}
	u.hold(s)
	if err := s.Commit(); err != nil {
		return err
	}
	u.written = text
	return nil
}

// end removes the file, unless it is another server's by now.
func (u *urlFile) end() error {
	if u.written == "" {
		return nil
	}
	if u.held != nil {
		defer u.held.Close()
	}
	info, err := os.Stat(u.String())
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if text, err := u.read(); err != nil || text != u.written {
		return err
	}
	return u.clear()
}
