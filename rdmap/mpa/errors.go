package mpa

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// What can be wrong with a request or reply; a [SetUpError] wraps one of them.
var (
	ErrNotMPA   = errors.New("not a set-up frame of MPA")
	ErrRevision = errors.New("revision does not fit")
	ErrMarkers  = errors.New("peer asks for markers")
	ErrPrivate  = errors.New("wrong length of private data")
	ErrEnhanced = errors.New("enhanced set-up without IRD and ORD")
	ErrEarly    = errors.New("peer sent before it had a reply")
	ErrReads    = errors.New("peer wants to read more at a time than is granted")
	ErrReady    = errors.New("no ready-to-receive frame that both sides know")
	ErrLost     = errors.New("connection ended during set-up")
)

// ErrOption says that this side asks for what cannot be.
var ErrOption = errors.New("wrong option")

// ErrWithdrawn says that memory was withdrawn while it was being sent. The connection can send
// other messages still, unless the error is [ddp.Lost] too: part of a frame of that memory may be with the peer, and
// the connection is aborted, so that the peer never takes other octets for good ones.
var ErrWithdrawn = errors.New("memory was withdrawn while it was being sent")

// ErrInterrupted says that [Conn.Interrupt] ended a Receive. The next one goes on.
var ErrInterrupted = errors.New("interrupted")

// SetUpError is why a connection did not come about.
type SetUpError struct {
	// Err is the kind, one of those above.
	Err error
	// What says what was seen, and what to do.
	What string
	// Fault is what a Terminate tells the peer; 0: the peer is told nothing.
	Fault ddp.Fault
}

// Error says the kind, what was seen, and what to do.
func (e *SetUpError) Error() string { return fmt.Sprintf("%v: %s", e.Err, e.What) }

// Unwrap makes [errors.Is] find the kind.
func (e *SetUpError) Unwrap() error { return e.Err }

// RejectedError says that the peer refused the connection, and what it had to say.
type RejectedError struct {
	// Private is why, in a form that the two programs have agreed on.
	Private []byte
	// From is who refused.
	From net.Addr
}

// Error says who refused, and shows the private data, or some of it.
func (e *RejectedError) Error() string {
	s := "the peer rejected the connection"
	if e.From != nil {
		s = fmt.Sprintf("%v rejected the connection", e.From)
	}
	// Some pad what they say with zeros.
	said := strings.TrimRight(string(e.Private), "\x00")
	isText := utf8.ValidString(said) && strings.IndexFunc(said, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	switch {
	case len(e.Private) == 0:
		return s
	case said != "" && isText:
		return s + ": " + said
	}
	return fmt.Sprintf("%s, with private data %.64q", s, e.Private)
}
