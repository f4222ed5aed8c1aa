package link

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// The errors that programs test for with errors.Is. ErrClosed is net.ErrClosed
// too.
var (
	ErrClosed     = dgrdma.ErrClosed
	ErrRefused    = errors.New("link: refused by the peer")
	ErrNoPort     = errors.New("link: the peer does not listen on that port") // an ErrRefused, too
	ErrPeerClosed = errors.New("link: the peer closed the link before the end of file")
	ErrNoAnswer   = errors.New("link: no answer")
	ErrVersion    = errors.New("link: versions differ")
	ErrNoMemory   = errors.New("link: out of memory")
	ErrTooLong    = errors.New("link: message longer than the peer's buffers")
	ErrOutOfTurn  = errors.New("link: buffers are given back in the order in which they were acquired or received")
	ErrNoHalf     = errors.New("link: this side has no such half; it was dialed for the other direction, see Options.Directions")
	ErrProtocol   = errors.New("link: the peer broke the rules of the link")
	ErrLayout     = errors.New("link: invalid buffers or flags")
)

// outOfTurn is an ErrOutOfTurn that says which rule it was.
type outOfTurn string

func (e outOfTurn) Error() string { return "link: " + string(e) }
func (outOfTurn) Unwrap() error   { return ErrOutOfTurn }

const (
	sentAlready  outOfTurn = "this buffer was committed already; each that is acquired is committed once"
	heldByCaller outOfTurn = "acquired buffers are not committed: commit them first"
)

// refusedError is the answer of a peer that refused a link: an ErrRefused.
type refusedError struct {
	why  refusal
	text string
}

func (e *refusedError) Error() string { return ErrRefused.Error() + ": " + e.text }

func (e *refusedError) Is(target error) bool {
	return target == ErrRefused || target == ErrNoPort && e.why == noPort
}

// AbortError is the reason that the peer gave with [Link.Abort]. It is an
// ErrPeerClosed.
type AbortError struct {
	Reason string // printable, whatever the peer sent
}

func (e *AbortError) Error() string { return "link: the peer ended the link: " + e.Reason }

func (e *AbortError) Unwrap() error { return ErrPeerClosed }

// Error says which link failed, and how.
type Error struct {
	Op   string // what was tried; empty if the link ended by itself
	Port string // name of the port; empty for links made by Offer and Attach
	Peer string
	Err  error
}

func (e *Error) Error() string {
	text := "link: "
	if e.Op != "" {
		text += e.Op + " "
	}
	if e.Port != "" {
		text += fmt.Sprintf("port %q of ", e.Port)
	}
	// The package and the peer are named once.
	return text + e.Peer + once.Replace(strings.ReplaceAll(": "+fmt.Sprint(e.Err), "dgrdma: "+e.Peer+": ", ""))
}

// once leaves out the package of an error within one that names it.
var once = strings.NewReplacer(": link: ", ": ", ": dgrdma: ", ": ")

func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the link failed because the peer, or its program, was silent.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.Is(e.Err, ErrNoAnswer) || errors.As(e.Err, &t) && t.Timeout()
}

// Temporary is false: a link that failed stays so. With it an Error is a [net.Error].
func (e *Error) Temporary() bool { return false }

// errNotGranted discards a message: it is acknowledged, so that a peer that has not heard of a link's
// end is not held up by it.
var errNotGranted = dgrdma.Swallow(fmt.Errorf("link: nothing of this peer's is at this address"))

// refusal says why there is no link, where the dialer's program may act on it. The other refusals are
// text.
type refusal uint8

const noPort refusal = 1 // the host does not listen on that port
