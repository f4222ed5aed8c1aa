package mpa

import (
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

const (
	// slabSize holds two of the longest frames. With twice as much, and the receiver's buffer too, a stream with
	// CRC on loopback took 490 us for a megabyte, with this 210: the other side begins earlier, and
	// all stays in the cache.
	slabSize = 128 << 10
	// maxPieces is IOV_MAX of Linux.
	maxPieces = 1024
	// maxBatch is how many octets a batch may refer to: their memory is kept from its owner for one
	// call.
	maxBatch = 512 << 10
	// maxMessages bounds the messages that end in a batch.
	maxMessages = 2048
	// minReference is the payload from which on a piece of its own, and a guard to enter again, cost less
	// than copying.
	minReference = 2 << 10
)

// Payload of the longest frames between our own kind: whole pages, so that the pages of the
// target come in one read each.
const longPayload = 15 * 4096

// batch is frames on their way to the socket: pieces of the slab, and of memory that the
// messages name.
type batch struct {
	slab []byte
	used int
	// open is where in the slab the piece begins that is not in vecs yet.
	open    int
	vecs    [maxPieces]unix.Iovec
	guards  [maxPieces]ddp.Guard // of the memory of vecs; nil: the slab, or it stays
	epochs  [maxPieces]uint64    // of guards
	n       int                  // pieces
	first   int                  // the first that is not written to its end
	size    int                  // octets of all
	wrote   int                  // octets that are with the socket
	record  int                  // where in the slab the frame begins that wrote is in, if the slab has all
	ends    [maxMessages]uint32  // where messages end
	ended   int
	told    int  // messages that the source knows to be sent
	mute    bool // the source is not told which of its messages are sent
	records records
}

var batches = sync.Pool{New: func() any { return &batch{slab: make([]byte, slabSize)} }}

// release gives the batch back. It keeps no memory of messages alive.
func (b *batch) release() {
	clear(b.vecs[:b.n])
	clear(b.guards[:b.n])
	b.used, b.open, b.n, b.first = 0, 0, 0, 0
	b.size, b.wrote, b.record, b.ended, b.told = 0, 0, 0, 0, 0
	b.mute = false
	b.records.clear()
	batches.Put(b)
}

func (b *batch) pending() bool { return b.wrote < b.size }

// sent returns how many messages are wholly written that sent has not counted yet.
func (b *batch) sent() int {
	n := 0
	if b.mute {
		return 0
	}
	for b.told < b.ended && int(b.ends[b.told]) <= b.wrote {
		b.told++
		n++
	}
	return n
}

// close puts the open piece of the slab among the pieces.
func (b *batch) close() {
	if b.used > b.open {
		b.refer(&ddp.Span{Bytes: b.slab[b.open:b.used]})
		b.open = b.used
	}
}

func (b *batch) refer(s *ddp.Span) {
	b.vecs[b.n].Base = &s.Bytes[0]
	b.vecs[b.n].SetLen(len(s.Bytes))
	b.guards[b.n], b.epochs[b.n] = s.Guard, s.Epoch
	b.n++
}

// piece is one of the pieces.
func (b *batch) piece(i int) ddp.Span {
	return ddp.Span{Bytes: bytesOf(&b.vecs[i]), Guard: b.guards[i], Epoch: b.epochs[i]}
}

// advance counts n octets as written.
func (b *batch) advance(n int) {
	b.wrote += n
	for b.first < b.n && n >= int(b.vecs[b.first].Len) {
		n -= int(b.vecs[b.first].Len)
		b.first++
	}
	if n > 0 {
		skip(&b.vecs[b.first], n)
	}
}

// frameEnd returns where in the slab, which has all, the frame ends that begins there.
func (b *batch) frameEnd(at int) int {
	n := int(binary.BigEndian.Uint16(b.slab[at:]))
	return at + LengthSize + n + TrailerSize(n)
}

// mark is how far a batch was filled before a frame.
type mark struct{ used, open, n, size int }

func (b *batch) mark() mark { return mark{b.used, b.open, b.n, b.size} }

// cut takes back what has been put into the batch since the mark.
func (b *batch) cut(m mark) {
	clear(b.vecs[m.n:b.n])
	clear(b.guards[m.n:b.n])
	b.used, b.open, b.n, b.size = m.used, m.open, m.n, m.size
}
