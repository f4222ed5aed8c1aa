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

// batch collects frames for one call of the transport. It belongs to whoever
// holds the turn.
type batch struct {
	frames   []transport.Outgoing
	hot      []*slab // of frames that are made again if they are lost
	smalls   []byte  // buffers of frames that are sent once and forgotten
	nSmall   int
	headroom int
	number   atomic.Uint64 // counts the batches; others read it
}

func (b *batch) init(headroom int) {
	b.headroom = headroom
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

// fits reports whether there is room for a frame of that length in buffer.
func (b *batch) fits(size int) bool {
	n := len(b.hot)
	return n < mostHot || slabSize-b.hot[n-1].used >= size
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

// clear forgets all frames.
func (b *batch) clear() {
	for i, mem := range b.hot {
		mem.used, b.hot[i] = 0, nil
		slabs.Put(mem)
	}
	clear(b.frames)
	b.frames, b.hot, b.nSmall = b.frames[:0], b.hot[:0], 0
}

func (b *batch) add(to *transport.Addr, buf []byte) {
	b.frames = append(b.frames, transport.Outgoing{To: to, Buf: buf})
}
