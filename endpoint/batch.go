package endpoint

import (
	"sync/atomic"

	"github.com/dgrdma/dgrdma/transport"
)

// maxBatch bounds the frames given to the transport at once: one system call's
// worth, and the bound on how long a turn keeps a connection's lock.
const maxBatch = 128

// mostHot is how many slabs the frames of a batch may take that are forgotten once they are
// sent: two system calls' worth. More would not stay in the processor's cache until the next
// batch writes into them again.
const mostHot = 2

const (
	// leastLent is how many bytes of its transaction a frame has at least that leaves with
	// them where they are: fewer are copied sooner than the system is told of another piece.
	// With 8932 it carries 1.1 times as much, with 1408, over UDP, less.
	leastLent = 4096
	// mostLent bounds such bytes of a batch: 256 KiB carry 0.95 times as much.
	mostLent = 1 << 20
	// leastSealed is that where frames are sealed: the bytes are copied once, to where they are sealed, and are still in the
	// nearest cache then. Arbitrary.
	leastSealed = 512
	// mostSealed bounds such bytes: half as many carry 0.9 times as much, twice as many hardly more.
	mostSealed = 1 << 18
)

// batch collects frames for one call of the transport. It belongs to whoever
// holds the turn.
type batch struct {
	frames   []transport.Outgoing
	hot      []*slab // of frames that are made again if they are lost
	smalls   []byte  // buffers of frames that are sent once and forgotten
	nSmall   int
	headroom int
	least    int           // bytes that a frame has of its transaction where those are
	lent     int           // such bytes of all frames
	most     int           // how many these may be, and those of another frame
	lends    atomic.Bool   // there are some; others read it
	number   atomic.Uint64 // counts the batches; others read it
}

func (b *batch) init(headroom, least, most int) {
	b.headroom, b.least, b.most = headroom, least, most
	b.frames = make([]transport.Outgoing, 0, maxBatch)
	b.smalls = make([]byte, maxBatch*(headroom+smallLength))
}

func (b *batch) full() bool { return len(b.frames) == maxBatch }

// small returns a buffer for a frame that nobody keeps. There is one for every
// frame of a batch. What was in it is still there: who takes it writes all that is sent.
func (b *batch) small() []byte {
	n := b.headroom + smallLength
	buf := b.smalls[b.nSmall*n : (b.nSmall+1)*n : (b.nSmall+1)*n]
	b.nSmall++
	return buf
}

// fits reports whether there is room for another frame, of which no more than size bytes come
// from buffer.
func (b *batch) fits(size int) bool {
	n := len(b.hot)
	return (n < mostHot || slabSize-b.hot[n-1].used >= size) && b.lent < b.most
}

// buffer returns room for a frame of that length, which fits, behind the one before.
func (b *batch) buffer(size int) []byte {
	n := len(b.hot)
	if n == 0 || slabSize-b.hot[n-1].used < size {
		b.hot = append(b.hot, slabs.Get().(*slab))
		n++
	}
	mem := b.hot[n-1]
	at := mem.used
	mem.used += size
	return mem.mem[at:mem.used:mem.used]
}

// frame returns the buffer of a frame of a transaction that ends with these bytes, and begins
// with so many others, which are still to be written; and the bytes, if they stay where they are.
// Behind the buffer there is room for that many more.
func (b *batch) frame(head int, end []byte, t *Transaction, spare int) (buf, rest []byte) {
	head += b.headroom
	if length := head + len(end); len(end) < b.least {
		buf = b.buffer(length + spare)[:length]
		copy(buf[head:], end)
		return buf, nil
	}
	if b.lent == 0 {
		b.lends.Store(true)
	}
	b.lent += len(end)
	t.leaves = b.number.Load() + 1
	return b.buffer(head + spare)[:head], end
}

// clear forgets all frames.
func (b *batch) clear() {
	for i, mem := range b.hot {
		mem.used, b.hot[i] = 0, nil
		slabs.Put(mem)
	}
	clear(b.frames)
	b.frames, b.hot, b.nSmall, b.lent = b.frames[:0], b.hot[:0], 0, 0
}

// add adds a frame. The batch is not full.
func (b *batch) add(to *transport.Addr, buf, rest, tail []byte) {
	n := len(b.frames)
	b.frames = b.frames[:n+1]
	o := &b.frames[n]
	o.To, o.Buf, o.Rest, o.Tail = to, buf, rest, tail // in place: a literal is built elsewhere, and moved
}
