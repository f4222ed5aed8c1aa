package endpoint

import (
	"sync"

	"github.com/dgrdma/dgrdma/frame"
)

// slab is memory for frames in flight. They lie side by side in the order in
// which they were made, so that the transport can give many of them to the kernel
// as one piece of memory. A slab belongs to one connection, and goes back to
// where all take theirs from when its last frame is acknowledged: what is used
// next was used a moment ago, by whomever, and a connection at rest has none.
type slab struct {
	mem  []byte
	used int // bytes of mem that hold frames
	held int // frames that may be sent again
}

// slabSize is what the kernel cuts into datagrams at most at once.
const slabSize = 1 << 16

var slabs = sync.Pool{New: func() any { return &slab{mem: make([]byte, slabSize)} }}

// outFrame is a frame in flight: where its bytes are, and whose messages it
// holds. The transactions of a frame are neighbours in sending.posted. There are as
// many as the window is long, so they are small.
type outFrame struct {
	slab   *slab
	first  *Transaction
	length uint32
	at     uint16 // in a slab that holds several
	n      uint16
}

func (o *outFrame) buf() []byte {
	end := int(o.at) + int(o.length)
	return o.slab.mem[o.at:end:end]
}

// buffer returns room for a full frame with the transport's headroom. It is
// taken when the frame is kept.
func (s *sending) buffer() []byte {
	size := s.headroom + s.frameMax
	mem := s.slab
	if mem == nil || len(mem.mem)-mem.used < size {
		if size > slabSize {
			mem = &slab{mem: make([]byte, size)}
		} else {
			mem = slabs.Get().(*slab)
		}
		s.slab = mem
	}
	return mem.mem[mem.used : mem.used+size : mem.used+size]
}

// keep remembers a frame in flight: its bytes, which are the beginning of what
// buffer returned, and whose messages it holds.
func (s *sending) keep(q frame.Seq, buf []byte, first *Transaction, n int) {
	s.follow()
	mem := s.slab
	s.out[int(q)&(len(s.out)-1)] = outFrame{mem, first, uint32(len(buf)), uint16(mem.used), uint16(n)}
	mem.used += len(buf)
	mem.held++
}

// discard forgets a frame that is not in flight any more. If it is being sent at
// this moment, its memory must wait.
func (s *sending) discard(o *outFrame) {
	if s.batched == s.batches.Load() {
		s.leaving = append(s.leaving, o.slab)
	} else {
		s.release(o.slab)
	}
	*o = outFrame{}
}

// releaseSent releases what was being sent, if it was sent meanwhile.
func (s *sending) releaseSent() {
	if len(s.leaving) == 0 || s.batched == s.batches.Load() {
		return
	}
	for i, mem := range s.leaving {
		s.release(mem)
		s.leaving[i] = nil
	}
	s.leaving = s.leaving[:0]
}

func (s *sending) release(mem *slab) {
	if mem.held--; mem.held > 0 {
		return
	}
	if s.slab == mem {
		s.slab = nil
	}
	if mem.used = 0; len(mem.mem) == slabSize {
		slabs.Put(mem)
	}
}
