package outgoing

import (
	"sync/atomic"

	"github.com/dgrdma/dgrdma/transport"
)

// MaxBatch bounds the frames given to the transport at once: one system call's
// worth, and the bound on how long a turn keeps a connection's lock.
const MaxBatch = 128

// mostHot is how many slabs the frames of a batch may take that are forgotten once they are
// sent, enough for a batch of full frames with a MTU of 1500. More would not stay in the processor's cache until the next
// batch writes into them again.
const mostHot = 3

// Batch collects frames for one call of the transport. It belongs to the holder of the send lock.
type Batch struct {
	frames   []transport.Outgoing
	hot      []*slab // of frames that are made again if they are lost
	smalls   []byte  // buffers of frames that are sent once and forgotten
	nSmall   int
	small    int // length of such a buffer
	headroom int
	mark     transport.ECN // of frames that are added
	lending  Lending
	lent     int           // bytes of all frames that are not copied
	lends    atomic.Bool   // there are some; others read it
	number   atomic.Uint64 // counts the batches that were sent; others read it
}

// Init prepares a batch. headroom is what the transport needs before each frame, small the length of the longest frame that is sent
// once and forgotten.
func (b *Batch) Init(headroom, small int, l Lending) {
	b.headroom, b.small, b.lending = headroom, headroom+small, l
	b.frames = make([]transport.Outgoing, 0, MaxBatch)
	b.smalls = make([]byte, MaxBatch*b.small)
}

// Mark has frames leave with a mark that are added from now on.
func (b *Batch) Mark(m transport.ECN) { b.mark = m }

// Headroom returns how many bytes the transport needs before each frame.
func (b *Batch) Headroom() int { return b.headroom }

// Frames returns the frames of the batch.
func (b *Batch) Frames() []transport.Outgoing { return b.frames }

// IsFull reports whether the batch has as many frames as it may.
func (b *Batch) IsFull() bool { return len(b.frames) == MaxBatch }

// Room returns how many more frames it may have.
func (b *Batch) Room() int { return MaxBatch - len(b.frames) }

// Small returns a buffer for a frame that is not kept. There is one for every
// frame of a batch. What was in it is still there: the caller writes all that is sent.
func (b *Batch) Small() []byte {
	n := b.small
	buf := b.smalls[b.nSmall*n : (b.nSmall+1)*n : (b.nSmall+1)*n]
	b.nSmall++
	return buf
}

// Fits reports whether there is room for another frame, of which no more than size bytes come
// from Buffer.
func (b *Batch) Fits(size int) bool {
	n := len(b.hot)
	return (n < mostHot || b.hot[n-1].has(size)) && b.lent < b.lending.Most
}

// Buffer returns room for a frame of that length, which fits, after the one before. It is
// the frame's until the batch was sent.
func (b *Batch) Buffer(size int) []byte {
	mem := b.slabFor(size)
	at := mem.used
	mem.used += size
	return mem.mem[at:mem.used:mem.used]
}

// slabFor returns the slab of the batch where so many bytes go, which fit.
func (b *Batch) slabFor(size int) *slab {
	n := len(b.hot)
	if n == 0 || !b.hot[n-1].has(size) {
		b.hot = append(b.hot, slabs.Get().(*slab))
		n++
	}
	return b.hot[n-1]
}

// Add adds a frame: buf, which begins with the headroom, then rest, then tail. The batch is not full. What Add returns is the
// batch's, and good until End.
func (b *Batch) Add(to *transport.Addr, buf, rest, tail []byte) *transport.Outgoing {
	n := len(b.frames)
	b.frames = b.frames[:n+1]
	o := &b.frames[n]
	o.To, o.Buf, o.Rest, o.Tail, o.ECN = to, buf, rest, tail, b.mark // in place: a literal is built elsewhere, and moved
	return o
}

// End forgets all frames, which were sent or dropped, and begins the next batch. It reports whether the batch had bytes of transactions
// that were not copied: they are not needed any more.
func (b *Batch) End() (lent bool) {
	lent = b.lent > 0
	for i, mem := range b.hot {
		mem.giveBack()
		b.hot[i] = nil
	}
	clear(b.frames)
	b.frames, b.hot, b.nSmall, b.lent = b.frames[:0], b.hot[:0], 0, 0
	b.number.Add(1)
	if lent {
		b.lends.Store(false)
	}
	return lent
}

// Number returns how many batches have ended. Any goroutine may call it.
func (b *Batch) Number() uint64 { return b.number.Load() }
