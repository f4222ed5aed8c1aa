package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// What streams fail with, beside what their links fail with. Peers are told these
// texts as they are.
var (
	ErrMismatch   = errors.New("what arrived is not what was sent")
	ErrIncomplete = errors.New("it ended the stream before all of it was there")
	ErrDirections = errors.New("one side sends back, the other does not: both need Exchange")
	ErrUsed       = errors.New("the stream was used before")
	ErrChanged    = errors.New("the source ended before what was announced of it was sent")
)

// HelloError says that who is there speaks no streams, or another version.
type HelloError struct {
	Said []byte // how it introduced itself
}

func (e *HelloError) Error() string {
	if e.OtherVersion() {
		return fmt.Sprintf("version %d of streams is spoken there, %d here", e.Said[0], helloVersion)
	}
	return fmt.Sprintf("what is there speaks no streams: it introduced itself with % x", e.Said)
}

// OtherVersion reports whether it may be the version only that differs.
func (e *HelloError) OtherVersion() bool { return len(e.Said) > 0 && e.Said[0] != helloVersion }

// LocalError is a failure of what this side reads from or writes to. The peer is told
// of it without the names of files in Err, which are none of its business.
type LocalError struct {
	What string // what could not be done
	Err  error
}

func (e *LocalError) Error() string { return e.What + ": " + e.Err.Error() }

func (e *LocalError) Unwrap() error { return e.Err }

// shortError is ErrChanged, and says how much was there.
type shortError struct{ sent, size int64 }

func (e *shortError) Error() string { return fmt.Sprintf("%d of %d bytes", e.sent, e.size) }

func (e *shortError) Is(target error) bool { return target == ErrChanged }

// reasonForPeer is what the peer is told.
func reasonForPeer(err error) string {
	var local *LocalError
	if !errors.As(err, &local) {
		return err.Error()
	}
	cause := local.Err
	var number syscall.Errno
	if errors.As(cause, &number) {
		cause = number
	} else if errors.Is(cause, fs.ErrExist) {
		cause = fs.ErrExist
	}
	return local.What + ": " + cause.Error()
}

// isGone reports whether a stream failed because of a peer that listens no more.
func isGone(err error) bool {
	return errors.Is(err, link.ErrPeerClosed) || errors.Is(err, dgrdma.ErrPeerDown) || errors.Is(err, dgrdma.ErrPeerRestarted)
}
