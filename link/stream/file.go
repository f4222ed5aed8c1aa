package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// CreateFile begins to write a file that gets its name when it is committed: a program that sees it
// sees all of it, and it is on disk. Until then there is no file of that name, not even if the process
// is killed, where the file system has files without a name.
//
// A file of that name that is there already, or appears in that time, is fs.ErrExist. With replace it
// is replaced, in one step. A file that replaces another one gets its mode, and its owner where this
// process may give files away. A symbolic link stays one. Devices and FIFOs are written to as they
// are.
func CreateFile(name string, replace bool) (Sink, error) {
	if err := CheckFile(name, replace); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if err == nil {
		if !info.Mode().IsRegular() {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return nil, err
			}
			return special{f}, nil
		}
		// What a symbolic link points to is replaced, not the link.
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return nil, err
		}
	}
	w, err := createWhole(name, replace, openUnnamed)
	if err != nil {
		return nil, err // and not a sink without a file
	}
	if info != nil {
		if err := w.becomeLike(info); err != nil {
			w.Discard()
			return nil, err
		}
	}
	return w, nil
}

// CheckFile returns the error that [CreateFile] would return, as far as that can be known before.
func CheckFile(name string, replace bool) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s is a symbolic link to nowhere", name)
		}
		if err := unix.Access(filepath.Dir(name), unix.W_OK|unix.X_OK); err != nil {
			return &fs.PathError{Op: "write into", Path: filepath.Dir(name), Err: err}
		}
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it, as in %s", name, filepath.Join(name, "FILE"))
	case !replace && (info.Mode().IsRegular() || info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0):
		return existsError(name)
	}
	return nil
}

func existsError(name string) error {
	return &fs.PathError{Op: "write", Path: name, Err: errExists}
}

var errExists = existing{}

type existing struct{}

func (existing) Error() string        { return "exists already" }
func (existing) Is(target error) bool { return target == fs.ErrExist }

// special is a device or a FIFO, which cannot be half written.
type special struct{ *os.File }

func (s special) Commit() error { return s.Close() }
func (s special) Discard()      { s.Close() }
func (special) String() string  { return theFile }

// wholeFile is a file that is there when all of it is, and on disk. Until then it has no name, so that
// nothing is left of it even if the process is killed. On file systems that need a name it has another
// one.
type wholeFile struct {
	*os.File
	name    string
	replace bool
	hidden  string // its name until then; empty: none
}

func (*wholeFile) String() string { return theFile }

const theFile = "the file" // its name may be private

func createWhole(name string, replace bool, unnamed func(name string) (*os.File, error)) (*wholeFile, error) {
	w := &wholeFile{name: name, replace: replace}
	var err error
	if w.File, err = unnamed(name); err == nil {
		return w, nil
	}
	w.hidden = hiddenName(name)
	w.File, err = os.OpenFile(w.hidden, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, &fs.PathError{Op: "write", Path: name, Err: withoutPath(err)}
	}
	return w, nil
}

// becomeLike gives the file the mode of the one that it replaces. Nothing is in it yet that users
// could read that may not read the old one.
func (w *wholeFile) becomeLike(old fs.FileInfo) error {
	info, err := w.Stat()
	if err != nil {
		return err
	}
	was, is := old.Sys().(*syscall.Stat_t), info.Sys().(*syscall.Stat_t)
	if was.Uid != is.Uid || was.Gid != is.Gid {
		w.Chown(int(was.Uid), int(was.Gid)) // in general only root may, and this process's owner is as good
	}
	if info.Mode().Perm() == old.Mode().Perm() {
		return nil // not every file system has modes
	}
	return w.Chmod(old.Mode().Perm())
}

// hiddenName returns a name in the same directory that no file has.
func hiddenName(name string) string {
	return filepath.Join(filepath.Dir(name), fmt.Sprintf(".dgrdma-%016x.part", rand.Uint64()))
}

// openUnnamed makes a file that can be given that name.
func openUnnamed(name string) (*os.File, error) {
	fd, err := unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := os.Stat(descriptorPath(f)); err != nil {
		f.Close() // without /proc it cannot get a name
		return nil, err
	}
	return f, nil
}

func descriptorPath(f *os.File) (path string) {
	if c, err := f.SyscallConn(); err == nil { // File.Fd might make it blocking
		c.Control(func(fd uintptr) { path = fmt.Sprintf("/proc/self/fd/%d", fd) })
	}
	return path
}

// Commit gives the file its name.
func (w *wholeFile) Commit() error {
	if err := w.Sync(); err != nil {
		return err
	}
	var err error
	switch {
	case w.hidden == "" && !w.replace:
		err = giveName(descriptorPath(w.File), w.name)
	case w.hidden == "":
		hidden := hiddenName(w.name)
		if err = giveName(descriptorPath(w.File), hidden); err != nil {
			break
		}
		if err = os.Rename(hidden, w.name); err != nil {
			os.Remove(hidden)
		}
	case !w.replace:
		err = renameWithoutReplacing(w.hidden, w.name)
	default:
		err = os.Rename(w.hidden, w.name)
	}
	if errors.Is(err, fs.ErrExist) {
		return existsError(w.name) // it appeared since CheckFile
	}
	if err != nil {
		return err
	}
	w.hidden = ""
	return errors.Join(w.Close(), syncDirectory(filepath.Dir(w.name)))
}

func giveName(from, to string) error {
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: err}
	}
	return nil
}

// renameWithoutReplacing needs one of two system calls that not every file system has.
func renameWithoutReplacing(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch err {
	case nil:
		return nil
	case unix.EINVAL, unix.ENOSYS:
		if err := giveName(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}

// syncDirectory puts a new name on disk.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil // not every file system has that
	}
	return errors.Join(err, d.Close())
}

func (w *wholeFile) Discard() {
	w.Close()
	if w.hidden != "" {
		os.Remove(w.hidden)
	}
}

// withoutPath returns an error of a file without the name, which the caller adds.
func withoutPath(err error) error {
	var path *fs.PathError
	var two *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &two):
		return two.Err
	}
	return err
}
