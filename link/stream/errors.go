package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// The errors of streams, in addition to those of their links. Peers are told these texts as they are.
var (
	ErrMismatch   = errors.New("what arrived is not what was sent")
	ErrIncomplete = errors.New("the stream ended before all of it was there")
	ErrDirections = errors.New("one side sends back, the other does not: both need Exchange")
	ErrUsed       = errors.New("the stream was used before")
	ErrChanged    = errors.New("the source ended before what was announced of it was sent")
)

// HelloError says that the peer speaks no streams, or another version.
type HelloError struct {
	Said []byte // the private data of the peer
}

func (e *HelloError) Error() string {
	switch {
	case len(e.Said) == 0:
		return "the peer speaks no streams: it said nothing"
	case e.OtherVersion():
		return fmt.Sprintf("the peer speaks version %d of streams, this is version %d", e.Said[0], helloVersion)
	}
	return fmt.Sprintf("the peer speaks no streams: it said % x", e.Said)
}

// OtherVersion reports whether the peer may speak another version of streams.
func (e *HelloError) OtherVersion() bool { return len(e.Said) > 0 && e.Said[0] != helloVersion }

// LocalError is a failure of what this side reads from or writes to. The peer is told of it without
// the names of files in Err, which may be private.
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

// reasonForPeer returns the reason that the peer is told.
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

// isGone reports whether a stream failed because the peer does not listen any more.
func isGone(err error) bool {
	return errors.Is(err, link.ErrPeerClosed) || errors.Is(err, dgrdma.ErrPeerDown) || errors.Is(err, dgrdma.ErrPeerRestarted)
}
