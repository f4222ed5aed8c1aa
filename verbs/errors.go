package verbs

import (
	"errors"
	"net"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// How connections end that no fault ended: see [QueuePair.Err].
var (
	// ErrPeerClosed is the end of a connection that the peer closed.
	ErrPeerClosed = errors.New("the peer closed the connection")
	// ErrClosed is the end of a connection that this side closed, and what a closed host, listener or queue pair
	// says. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
)

// Errors of work requests, to test for with errors.Is, and what they say.
var (
	ErrFlushed   = rdmap.ErrFlushed   // the stream ended before the request was done
	ErrFull      = rdmap.ErrFull      // the queue is full
	ErrTooLong   = rdmap.ErrTooLong   // a message has at most 4294967295 bytes
	ErrNotAgreed = rdmap.ErrNotAgreed // the operation is of an extension that was not agreed on
	ErrNoReads   = rdmap.ErrNoReads   // the peer answers no Reads on this stream (ORD is 0)
	ErrInvalid   = rdmap.ErrInvalid   // invalid work request
)

// Errors of registering memory, and of what peers do there (a [TerminateError] has them as its Detail), to test for with errors.Is, and what they say.
var (
	ErrAssociation   = memory.ErrAssociation   // not for this stream
	ErrBounds        = memory.ErrBounds        // out of bounds
	ErrInvalidated   = memory.ErrInvalidated   // the region was invalidated
	ErrNotPersistent = memory.ErrNotPersistent // cannot be made persistent
	ErrRights        = memory.ErrRights        // rights are missing
	ErrTooMany       = memory.ErrTooMany       // half of all STags are in use: invalidate some
	ErrMisaligned    = memory.ErrMisaligned    // the address of an atomic operation is not a multiple of 8
	ErrFileLost      = memory.ErrLost          // the system cannot get at the bytes any more: was their file cut, or is its disk broken or full?
	ErrNoFlush       = memory.ErrNoFlush       // a Flush that asks for nothing
	ErrMismatch      = memory.ErrMismatch      // the bytes in storage are not those that were to be verified
	ErrHashLength    = memory.ErrHashLength    // the hash to compare with has not the length of the region's algorithm
)

// Errors of setting a connection up (a [SetUpError] wraps most of them), to test for with errors.Is, and what they say.
var (
	ErrNotMPA      = mpa.ErrNotMPA      // not a set-up frame of MPA
	ErrRevision    = mpa.ErrRevision    // revision does not fit
	ErrMarkers     = mpa.ErrMarkers     // peer asks for markers
	ErrPrivate     = mpa.ErrPrivate     // wrong length of private data
	ErrEnhanced    = mpa.ErrEnhanced    // enhanced set-up without IRD and ORD
	ErrEarly       = mpa.ErrEarly       // peer sent before it had a reply
	ErrReads       = mpa.ErrReads       // peer wants to read more at a time than is granted
	ErrReady       = mpa.ErrReady       // no ready-to-receive frame that both sides know
	ErrLost        = mpa.ErrLost        // connection ended during set-up
	ErrOption      = mpa.ErrOption      // wrong option
	ErrWithdrawn   = mpa.ErrWithdrawn   // memory was withdrawn while it was being sent
	ErrInterrupted = mpa.ErrInterrupted // interrupted
)
