package dgrdma

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/dgrdma/dgrdma/endpoint/session"
)

// closedError is ErrClosed; to errors.Is it is net.ErrClosed too.
type closedError struct{}

func (closedError) Error() string        { return "dgrdma: closed" }
func (closedError) Is(target error) bool { return target == net.ErrClosed }

// peerClosedError is ErrPeerClosed; to errors.Is it is ErrPeerDown too.
type peerClosedError struct{}

func (peerClosedError) Error() string { return "dgrdma: the peer closed the connection" }
func (peerClosedError) Unwrap() error { return ErrPeerDown }

// noKeyError is ErrNoKey; to errors.Is it is ErrPeerDown too.
type noKeyError struct{}

func (noKeyError) Error() string { return "dgrdma: no key was agreed on with the peer" }
func (noKeyError) Unwrap() error { return ErrPeerDown }

// refusedError is ErrRefused; to errors.Is it is ErrPeerDown too.
type refusedError struct{}

func (refusedError) Error() string { return "dgrdma: the peer takes no session" }
func (refusedError) Unwrap() error { return ErrPeerDown }

// falseAckError is ErrFalseAck; to errors.Is it is ErrPeerDown too.
type falseAckError struct{}

func (falseAckError) Error() string {
	return "dgrdma: the peer acknowledged a frame that had not been sent, to be sent more than the path carries, or its program is broken: update it, or stop dealing with it"
}
func (falseAckError) Unwrap() error { return ErrPeerDown }

// Of ErrNoKey, whether anybody answered.
var (
	errOtherKey  = &inWords{"the peer is there, and does not accept our key: has it the same one for us, and room for another peer?", ErrNoKey}
	errNoKeyHere = &inWords{"there is no key for this peer here: neither one of its own nor one for all", ErrNoKey}
	errUnkeyed   = &inWords{"nobody answers the question for a key: is the peer there, does it seal its connections, has it a key for us, and does it take us for a peer?", ErrNoKey}
)

// The errors that programs test for with errors.Is.
var (
	ErrClosed        error = closedError{}
	ErrQueueFull           = errors.New("dgrdma: too many transactions queued to this peer; wait for some to be done")
	ErrTooLarge            = errors.New("dgrdma: transaction needs more than 65535 messages; split it")
	ErrBounds              = errors.New("dgrdma: address outside the memory")
	ErrAlignment           = errors.New("dgrdma: address not aligned as the peer needs")
	ErrNoCompletion        = errors.New("dgrdma: this kind of peer needs a completion, and no word of it all-ones")
	ErrInUse               = errors.New("dgrdma: transaction is posted already and not done yet")
	ErrPeerDown            = errors.New("dgrdma: peer does not answer any more")
	ErrPeerClosed    error = peerClosedError{}
	ErrPeerRestarted       = errors.New("dgrdma: the peer restarted, or gave us up and began anew; whether the transaction was applied is unknown")
	ErrStaleCard           = errors.New("dgrdma: the card goes on from an earlier connection; disable and enable it through its control plane, then begin anew")
	ErrReset               = errors.New("dgrdma: connection was reset")
	ErrWrongID             = errors.New("dgrdma: the peer has another id")
	ErrRefused       error = refusedError{}
	ErrFalseAck      error = falseAckError{}
	ErrPeerExists          = errors.New("dgrdma: a peer with this id and address is connected already")
	ErrTooManyPeers        = errors.New("dgrdma: no room for another peer")
	ErrNoKey         error = noKeyError{}
)

// errPanic is why an endpoint fails whose program recovers the panic of a callback.
var errPanic = errors.New("dgrdma: endpoint failed: a callback panicked, or ended its goroutine; close the endpoint")

// inWords is an error that has a text of its own where that of what it is would mislead.
type inWords struct {
	text string
	is   error
}

func (e *inWords) Error() string { return e.text }
func (e *inWords) Unwrap() error { return e.is }

// errOtherLife is why nothing is posted to a life that is not the connection's.
var errOtherLife = &inWords{"this life of the connection is over, or never began; nothing was sent", ErrPeerRestarted}

// errNeverAnswered is ErrPeerDown of a peer of which nothing was ever heard.
var errNeverAnswered = &inWords{"dgrdma: peer never answered; perhaps its endpoint string is an old one, with another id or port, " +
	"or it is of another kind and needs its profile, or it does not take us for a peer, or takes nothing without a key, or it is full", ErrPeerDown}

// refusals are ErrRefused, by what the peer says.
var refusals = [...]error{
	session.NoUnknown: &inWords{"dgrdma: it takes no unknown peers: have its program accept any, or connect to this one", ErrRefused},
	session.NoRoom:    &inWords{"dgrdma: it has as many peers as it may have: try again later, or raise its bounds of peers", ErrRefused},
	session.NeedsSeal: &inWords{"dgrdma: it takes sealed connections alone: use its key", ErrRefused},
}

// errMisalignedRegion is ErrAlignment of memory of our own.
var errMisalignedRegion = &inWords{"dgrdma: a region must begin at a multiple of 8, and this memory does not: map it, take it from NewRegion, or leave out its first bytes", ErrAlignment}

// PeerError says which peer failed, and how. It is what Err returns, and what
// Done gets for the transactions that were pending.
type PeerError struct {
	ID   EndpointID
	Addr Addr
	Op   string // what was tried, in words; empty if the peer ended it by itself
	Err  error
}

func (e *PeerError) Error() string {
	op := e.Op
	if op != "" {
		op += ": "
	}
	return fmt.Sprintf("dgrdma: peer %d at %v: %s%v", e.ID, e.Addr, op, inside(e.Err))
}

func (e *PeerError) Unwrap() error { return e.Err }

// Timeout reports whether the peer was given up because nothing came from it.
func (e *PeerError) Timeout() bool {
	return errors.Is(e.Err, ErrPeerDown) && !errors.Is(e.Err, ErrPeerClosed) && !errors.Is(e.Err, ErrRefused) && !errors.Is(e.Err, ErrFalseAck)
}

// Temporary is false: a connection that failed stays so until Reset. With it a PeerError is a
// [net.Error].
func (e *PeerError) Temporary() bool { return false }

var _ net.Error = (*PeerError)(nil)

// IDError says that the endpoint at the peer's address has another id than the one that was
// connected to. Nothing was sent there but HELLO. Endpoints of our own kind say so, over UDP.
type IDError struct {
	Want, Is EndpointID
}

func (e *IDError) Error() string {
	return fmt.Sprintf("it is endpoint %d, not %d; was it started anew with another id? Take the string that it prints now, "+
		"or its address alone, which has it asked for the id", e.Is, e.Want)
}

func (e *IDError) Unwrap() error { return ErrWrongID }

// inside is an error as part of a text that says whose it is already.
func inside(err error) error {
	text, ours := strings.CutPrefix(err.Error(), "dgrdma: ")
	if !ours {
		return err
	}
	return &inWords{text, err}
}

// Reason says why a received frame was not applied.
type Reason uint8

const (
	RefusedNone         Reason = iota
	RefusedMalformed           // no frame of the protocol
	RefusedDestination         // addressed to another endpoint
	RefusedSource              // source id unknown, or known at another address
	RefusedBounds              // data or completion address outside the memory
	RefusedMemory              // the memory's own Admit said no
	RefusedInconsistent        // messages of one transaction disagree (DGRDMA-023)
	RefusedTooManyOpen         // would open more transactions than allowed (DGRDMA-039)
	RefusedStale               // a copy that the network held back: its transaction is over
	RefusedForeign             // belongs to another session, or to another life of the peer
	RefusedNoSession           // is of no session that there is, or more strangers ask for one at once than are answered
	RefusedDown                // the peer was given up and not reset
	RefusedAckOfUnsent         // acknowledges ids that were never used
	RefusedAckTooOld           // acknowledges ids that may have been used again
	RefusedNoRoom              // of a new peer, for which there is no room
	RefusedOpenMemory          // what is incomplete takes all memory that it may, see Config.OpenMemory
	RefusedUnsealed            // is not sealed, and only sealed frames are taken, see Config.Keys
	RefusedSeal                // is sealed under another key, or one of which there is none here, was changed, or came before
	RefusedSealed              // is sealed, and there are no keys here
	RefusedChecksum            // was changed on the way, says its checksum, or has none where that was agreed on
	numReasons
)

var reasonNames = [numReasons]string{
	"none", "malformed", "destination", "source", "bounds", "memory", "inconsistent",
	"too_many_open", "stale", "foreign", "no_session", "down", "ack_of_unsent", "ack_too_old", "no_room", "open_memory",
	"unsealed", "seal", "sealed", "checksum",
}

func (r Reason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return "unknown"
}

// discarded is the error with which Admit drops one message.
type discarded struct{ error }

// Swallow wraps an error of Memory.Admit: the message is counted and
// acknowledged but not placed, and its transaction will never complete. The
// layer above has its own way to tell the sender. Any other error refuses the
// whole frame: it is not acknowledged, and the sender learns by failing. Swallow of nil
// drops the message, too.
func Swallow(err error) error { return discarded{err} }

func (s discarded) Error() string {
	if s.error == nil {
		return "dgrdma: message swallowed"
	}
	return s.error.Error()
}

func (s discarded) Unwrap() error { return s.error }
