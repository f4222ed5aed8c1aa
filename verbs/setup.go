package verbs

import (
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// RejectedError says that the peer refused the connection, and what it had to say.
//
//	type RejectedError struct {
//		// Private is why, in a form that the two programs have agreed on.
//		Private []byte
//		// From is who refused.
//		From net.Addr
//	}
//
//	func (e *RejectedError) Error() string
//	    Error says who refused, and shows the private data, or some of it.
type RejectedError = mpa.RejectedError

// SetUpError is why a connection did not come about.
//
//	type SetUpError struct {
//		// Err is the kind, one of those above.
//		Err error
//		// What says what was seen, and what to do.
//		What string
//		// Fault is what a Terminate tells the peer; 0: the peer is told nothing.
//		Fault Fault
//	}
//
//	func (e *SetUpError) Error() string
//	    Error says the kind, what was seen, and what to do.
//
//	func (e *SetUpError) Unwrap() error
//	    Unwrap makes [errors.Is] find the kind.
type SetUpError = mpa.SetUpError

// Ready is a set of kinds of frames that may be the first in peer-to-peer mode: the
// ready-to-receive frame of RFC 6581, by which the initiator lets the responder send.
//
//	type Ready uint8
//
//	const (
//		ReadyWrite Ready = 1 << iota
//		ReadyRead
//		ReadySend
//	)
//
//	func (r Ready) String() string
//	    String names the kinds.
type Ready = mpa.Ready

// What [Ready] can be.
const (
	ReadyWrite = mpa.ReadyWrite
	ReadyRead  = mpa.ReadyRead
	ReadySend  = mpa.ReadySend
)
