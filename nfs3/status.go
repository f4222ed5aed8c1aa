package nfs3

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Status is the status of a reply (nfsstat3). All but OK are errors: an [FS] returns them, and calls
// of a [Client] do.
type Status uint32

// The values of Status (RFC 1813, section 2.6).
const (
	OK             Status = 0
	ErrPerm        Status = 1     // not owner
	ErrNoEnt       Status = 2     // no such file or directory
	ErrIO          Status = 5     // a hard error
	ErrNXIO        Status = 6     // no such device or address
	ErrAcces       Status = 13    // permission denied
	ErrExist       Status = 17    // the file exists
	ErrXDev        Status = 18    // a hard link across file systems
	ErrNoDev       Status = 19    // no such device
	ErrNotDir      Status = 20    // not a directory
	ErrIsDir       Status = 21    // is a directory
	ErrInval       Status = 22    // invalid argument
	ErrFBig        Status = 27    // the file would be too large
	ErrNoSpc       Status = 28    // no space left
	ErrROFS        Status = 30    // read-only file system
	ErrMLink       Status = 31    // too many hard links
	ErrNameTooLong Status = 63    // a name is too long
	ErrNotEmpty    Status = 66    // the directory is not empty
	ErrDQuot       Status = 69    // the quota is exceeded
	ErrStale       Status = 70    // the object of this handle is gone
	ErrRemote      Status = 71    // too many levels of remote in the path
	ErrBadHandle   Status = 10001 // no handle of this server
	ErrNotSync     Status = 10002 // the guard of SETATTR did not match
	ErrBadCookie   Status = 10003 // a stale cookie of READDIR
	ErrNotSupp     Status = 10004 // the operation is not supported
	ErrTooSmall    Status = 10005 // the reply would not fit what the caller allows
	ErrServerFault Status = 10006 // any other error at the server
	ErrBadType     Status = 10007 // a type of object that the server does not create
	ErrJukebox     Status = 10008 // it takes long: ask again later
)

var statusTexts = map[Status][2]string{
	OK:             {"NFS3_OK", "no error"},
	ErrPerm:        {"NFS3ERR_PERM", "operation not permitted"},
	ErrNoEnt:       {"NFS3ERR_NOENT", "no such file or directory"},
	ErrIO:          {"NFS3ERR_IO", "input/output error"},
	ErrNXIO:        {"NFS3ERR_NXIO", "no such device or address"},
	ErrAcces:       {"NFS3ERR_ACCES", "permission denied"},
	ErrExist:       {"NFS3ERR_EXIST", "file exists"},
	ErrXDev:        {"NFS3ERR_XDEV", "cross-device link"},
	ErrNoDev:       {"NFS3ERR_NODEV", "no such device"},
	ErrNotDir:      {"NFS3ERR_NOTDIR", "not a directory"},
	ErrIsDir:       {"NFS3ERR_ISDIR", "is a directory"},
	ErrInval:       {"NFS3ERR_INVAL", "invalid argument"},
	ErrFBig:        {"NFS3ERR_FBIG", "file too large"},
	ErrNoSpc:       {"NFS3ERR_NOSPC", "no space left"},
	ErrROFS:        {"NFS3ERR_ROFS", "read-only file system"},
	ErrMLink:       {"NFS3ERR_MLINK", "too many links"},
	ErrNameTooLong: {"NFS3ERR_NAMETOOLONG", "file name too long"},
	ErrNotEmpty:    {"NFS3ERR_NOTEMPTY", "directory not empty"},
	ErrDQuot:       {"NFS3ERR_DQUOT", "quota exceeded"},
	ErrStale:       {"NFS3ERR_STALE", "stale file handle"},
	ErrRemote:      {"NFS3ERR_REMOTE", "object is remote"},
	ErrBadHandle:   {"NFS3ERR_BADHANDLE", "invalid file handle"},
	ErrNotSync:     {"NFS3ERR_NOT_SYNC", "file was changed"},
	ErrBadCookie:   {"NFS3ERR_BAD_COOKIE", "stale directory cookie"},
	ErrNotSupp:     {"NFS3ERR_NOTSUPP", "operation not supported"},
	ErrTooSmall:    {"NFS3ERR_TOOSMALL", "buffer too small"},
	ErrServerFault: {"NFS3ERR_SERVERFAULT", "server fault"},
	ErrBadType:     {"NFS3ERR_BADTYPE", "type not supported"},
	ErrJukebox:     {"NFS3ERR_JUKEBOX", "try again later"},
}

// String returns the name that RFC 1813 has for the status.
func (s Status) String() string {
	if t, ok := statusTexts[s]; ok {
		return t[0]
	}
	return fmt.Sprintf("NFS3ERR_%d", uint32(s))
}

// Error says what the status means, in words.
func (s Status) Error() string {
	if t, ok := statusTexts[s]; ok {
		return t[1]
	}
	return "unknown status " + fmt.Sprint(uint32(s))
}

// Is reports whether target is the error of package io/fs that has the meaning of s, so that
// errors.Is(err, fs.ErrNotExist) works with errors of a [Client].
func (s Status) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return s == ErrNoEnt || s == ErrStale
	case fs.ErrExist:
		return s == ErrExist || s == ErrNotEmpty
	case fs.ErrPermission:
		return s == ErrPerm || s == ErrAcces || s == ErrROFS
	case errors.ErrUnsupported:
		return s == ErrNotSupp
	}
	return false
}

var statusOfErrno = map[syscall.Errno]Status{
	syscall.EPERM: ErrPerm, syscall.ENOENT: ErrNoEnt, syscall.EIO: ErrIO, syscall.ENXIO: ErrNXIO, syscall.EACCES: ErrAcces, syscall.EEXIST: ErrExist,
	syscall.EXDEV: ErrXDev, syscall.ENODEV: ErrNoDev, syscall.ENOTDIR: ErrNotDir, syscall.EISDIR: ErrIsDir, syscall.EINVAL: ErrInval, syscall.EFBIG: ErrFBig,
	syscall.ENOSPC: ErrNoSpc, syscall.EROFS: ErrROFS, syscall.EMLINK: ErrMLink, syscall.ENAMETOOLONG: ErrNameTooLong, syscall.ENOTEMPTY: ErrNotEmpty,
	syscall.EDQUOT: ErrDQuot, syscall.ESTALE: ErrStale, syscall.ELOOP: ErrInval, syscall.ENOSYS: ErrNotSupp, syscall.EOPNOTSUPP: ErrNotSupp,
	syscall.ETXTBSY: ErrAcces, syscall.EBUSY: ErrJukebox, syscall.EMFILE: ErrJukebox, syscall.ENFILE: ErrJukebox, syscall.ENOMEM: ErrJukebox,
}

// StatusOf returns the status that tells a client of err: a Status in its chain, or what stands for
// an error of the operating system or of package io/fs; ErrIO for any other.
func StatusOf(err error) Status {
	if err == nil {
		return OK
	}
	var s Status
	if errors.As(err, &s) {
		return s
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if s, ok := statusOfErrno[errno]; ok {
			return s
		}
		return ErrIO
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoEnt
	case errors.Is(err, fs.ErrExist):
		return ErrExist
	case errors.Is(err, fs.ErrPermission):
		return ErrAcces
	case errors.Is(err, fs.ErrInvalid):
		return ErrInval
	case errors.Is(err, errors.ErrUnsupported):
		return ErrNotSupp
	}
	return ErrIO
}
