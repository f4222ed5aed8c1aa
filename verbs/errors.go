package verbs

import (
	"errors"
	"net"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// What programs hand to queue pairs, and get back.
type (
	Work       = rdmap.Work
	Receive    = rdmap.Receive
	Completion = rdmap.Completion
	Op         = rdmap.Op
	Extensions = rdmap.Extensions
	Rights     = memory.Rights
	Region     = memory.Region
	Window     = memory.Window
	// TerminateError is the end of a connection by a Terminate message, ours or the peer's.
	TerminateError = rdmap.TerminateError
)

// Operations, see [Work].
const (
	OpSend        = rdmap.OpSend
	OpWrite       = rdmap.OpWrite
	OpRead        = rdmap.OpRead
	OpFetchAdd    = rdmap.OpFetchAdd
	OpCompareSwap = rdmap.OpCompareSwap
	OpImmediate   = rdmap.OpImmediate
	OpFlush       = rdmap.OpFlush
	OpVerify      = rdmap.OpVerify
	OpAtomicWrite = rdmap.OpAtomicWrite
	OpInvalidate  = rdmap.OpInvalidate
	OpReceive     = rdmap.OpReceive
)

// Rights of memory.
const (
	RemoteRead      = memory.RemoteRead
	RemoteWrite     = memory.RemoteWrite
	RemoteAtomic    = memory.RemoteAtomic
	FlushPersistent = memory.FlushPersistent
	FlushGlobal     = memory.FlushGlobal
	Verify          = memory.Verify
)

// Extensions of RFC 5040.
const (
	Atomics    = rdmap.Atomics
	Immediates = rdmap.Immediates
	Commit     = rdmap.Commit
)

// Errors.
var (
	// ErrPeerClosed is the end of a connection that the peer closed.
	ErrPeerClosed = errors.New("verbs: the peer closed the connection")
	// ErrClosed is the end of a connection that this side closed.
	ErrClosed = net.ErrClosed
	// ErrFlushed is for requests that were not done when their connection ended. It comes with the
	// reason.
	ErrFlushed = rdmap.ErrFlushed
	// ErrFull says that a queue has no room.
	ErrFull = rdmap.ErrFull
)
