package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/queue"
	"github.com/dgrdma/dgrdma/frame"
)

// Segment is a run of bytes and where in the peer's memory they go.
type Segment struct {
	Addr  uint32
	Bytes []byte
}

// Transaction is what is posted: data in any number of segments, then one
// completion word, if there is one, written after all of them. The zero Transaction
// writes nothing.
//
// From Post until Done the transaction and the bytes of its segments belong to
// the library. Afterwards they may be used again, from within Done on.
type Transaction struct {
	Segments   []Segment
	Completion CompletionWord
	// Fence holds the transaction back until everything posted before it by the same
	// [Flow], or for Conn.Post on the connection, is done, urgent ones aside: then the
	// peer has that data and its completion words, whatever the network does. It costs a
	// round trip in which nothing of the flow is sent.
	Fence bool
	// Urgent lets it pass everything on the connection that has not begun and is not
	// urgent itself; when 16 in a row have passed, one frame of something else leaves. For what is
	// small, and keeps the other side waiting. With Fence it does nothing.
	Urgent bool
	// Done is called exactly once for every Post that returned nil: with nil
	// when the peer acknowledged all of it, else with the reason. It must not block, and
	// may Post; the package documentation says on whose goroutine it runs, under Callbacks.
	Done func(*Transaction, error)
	// Copied, if not nil, is called before Done when all bytes of the segments are
	// in frames: they, and they alone, belong to the caller again. It runs under
	// locks of the connection: it must not call the endpoint. If the transaction
	// fails before, there is only Done.
	Copied func(*Transaction)
	// Packed, if not nil, is called where Copied would be, of bytes that stay the
	// library's until Done: from then on they do not wait for a turn any more. To have
	// none of them copied costs less.
	Packed func(*Transaction)
	// Cookie is the caller's.
	Cookie any

	progress
}

// progress is how far a transaction is. It is guarded by the mutex of the connection on
// which it is posted.
type progress struct {
	entry    queue.Entry[Transaction] // once it has begun, id and count are assigned
	next     *Transaction             // in finished
	flow     *Flow                    // to which it was posted
	waiter   *writer
	err      error
	begunAt  ack.Instant
	leaves   uint64 // the number of batches when the last has left that has bytes of it
	id       uint32
	frames   uint32 // unacknowledged frames that hold messages of it
	segment  uint32 // next segment to be packed, and how much of it is
	offset   uint32
	base     uint32 // of a letter: where the peer's service begins, from which its addresses count
	count    uint16 // messages
	packed   uint16 // messages in frames so far
	posted   bool
	complete bool // all messages are in frames
	cutShort bool // it takes several frames, and begins before it is known how long they may be
}

// Bytes returns the data bytes of all segments.
func (t *Transaction) Bytes() (n int) {
	for i := range t.Segments {
		n += len(t.Segments[i].Bytes)
	}
	return n
}

// address returns where an address of the transaction is at the peer.
func (t *Transaction) address(a uint32) uint32 { return a + t.base }

// word returns where the completion word goes.
func (t *Transaction) word() uint32 {
	if t.Completion.IsZero() {
		return frame.NoCompletion
	}
	return t.address(t.Completion.Addr())
}

// describe sets what all messages of a transaction say.
func (t *Transaction) describe(m *frame.Message) {
	m.Txn, m.CompletionAddr, m.CompletionValue, m.Count = t.id, t.word(), t.Completion.Value(), t.count
}
