package verbs

import (
	"github.com/dgrdma/dgrdma/rdmap"
)

// Work is a work request: one operation for the send queue. Fields that an
// operation does not know are ignored:
//
//	Send         Data, More, Solicited, Invalidating and Invalidate
//	Immediate    Payload, Solicited
//	Write        STag, TO, Data, More
//	Read         STag, TO, Data and More, together as long as what is read
//	FetchAdd     STag, TO, Operand; Masked and Mask
//	CompareSwap  STag, TO, Compare, Operand; Masked, CompareMask and Mask
//	AtomicWrite  STag, TO, Payload
//	Flush        STag, TO, Length, Persistent, Global
//	Verify       STag, TO, Length, Hash
//	Invalidate   Invalidate
//
// ID, Fence and Silent are for all of them.
type Work struct {
	// ID is the program's, and comes back with the completion.
	ID uint64
	Op Op

	// Fence holds the operation back until the peer has answered all before it.
	Fence bool
	// Silent is for an operation whose completion is of interest only if it fails.
	Silent bool
	// Solicited asks the peer for an event: Send, Immediate.
	Solicited bool
	// Invalidating asks the peer to withdraw the memory of STag Invalidate when a Send
	// has arrived. OpInvalidate withdraws Invalidate at this side.
	Invalidating bool
	Invalidate   uint32

	// Data is what a Send or a Write carries, and where a Read puts what it reads; More follows
	// Data, piece by piece. They are not the program's until the work completes: it must not change what is
	// sent, nor read what is read. The list itself can be used again when the work is posted.
	Data []byte
	More [][]byte

	// STag and TO name the memory of the peer, as it told: TO, the tagged offset of RFC 5040, is the offset that
	// it gave to the first byte, a key's Offset, and how far behind that.
	STag uint32
	TO   uint64
	// Length is that of the range to flush or to verify.
	Length uint32

	// Operand is what is added, or swapped in if the old value is equal to Compare. With Masked,
	// only bits of CompareMask are compared and only those of Mask swapped; and Mask has the
	// upper bit of each field that FetchAdd adds by itself.
	Operand     uint64
	Compare     uint64
	Masked      bool
	Mask        uint64
	CompareMask uint64

	// Payload is the data of an Immediate or an AtomicWrite.
	Payload [8]byte

	// Persistent and Global are what a Flush has to reach, one at least.
	Persistent, Global bool
	// Hash is what a Verify expects; empty, it asks for the hash.
	Hash []byte
}

// Receive is a buffer for one message of the peer, a Send or immediate data. A message that is longer ends
// the connection.
type Receive struct {
	// ID is the program's, and comes back with the completion.
	ID uint64
	// Data is where the message goes, and More follows it, piece by piece. Neither is the program's until the receive completes, nor
	// is the list. Immediate data is not placed there.
	Data []byte
	More [][]byte
}

// Completion says that a work request or a receive is done.
type Completion struct {
	// ID and Op are those of the request; OpReceive: of a receive.
	ID uint64
	Op Op
	// Err is nil, or why it failed: what buffers hold then is not known.
	Err error
	// Length is how much was received, or read.
	Length uint32
	// Solicited says that the peer asked for an event.
	Solicited bool
	// Immediate says that the message was immediate data, which is in Payload.
	Immediate bool
	Payload   [8]byte
	// Invalidated says that the peer withdrew the memory of STag.
	Invalidated bool
	STag        uint32
	// Old is the value that FetchAdd or CompareSwap found.
	Old uint64
	// Hash is what a Verify computed, of HashSize bytes.
	Hash     [HashSize]byte
	HashSize int
	// Owner is whose completion it is: in package verbs the *QueuePair.
	Owner any
}

// Op is an operation that a program asks for, or that completed.
//
//	type Op uint8
//
//	const (
//		OpSend        Op = iota // a message into a receive of the peer
//		OpWrite                 // bytes into the peer's memory
//		OpRead                  // bytes of the peer's memory
//		OpFetchAdd              // adds to eight bytes of the peer's memory, and tells what they were
//		OpCompareSwap           // replaces eight bytes of the peer's memory if they are what is expected, and tells what they were
//		OpImmediate             // eight bytes as a message, for which a receive needs no buffer
//		OpFlush                 // has bytes of the peer's memory brought to storage, or made visible to all of its machine
//		OpVerify                // the hash of bytes of the peer's memory, as its storage has them
//		OpAtomicWrite           // replaces eight bytes of the peer's memory at once, after all that was asked for before
//		OpInvalidate            // withdraws memory of this side, in the order of the send queue
//		OpReceive               // what a receive completes with; it cannot be posted as work
//	)
//
//	func (o Op) String() string
//	    String is the operation's name.
type Op = rdmap.Op

// What [Op] can be.
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

// Extensions are the operations beyond RFC 5040 that both sides of a stream have agreed
// on. Nothing on the wire tells: the programs have to.
//
//	type Extensions uint8
//
//	const (
//		Atomics    Extensions = 1 << iota // FetchAdd and CmpSwap, RFC 7306
//		Immediates                        // Immediate Data, RFC 7306
//		Commit                            // Flush, Verify, Atomic Write, draft-talpey-rdma-commit-01
//	)
//
//	func (e Extensions) String() string
//	    String names the extensions as the constants do.
type Extensions = rdmap.Extensions

// What [Extensions] can be.
const (
	Atomics    = rdmap.Atomics
	Immediates = rdmap.Immediates
	Commit     = rdmap.Commit
)
