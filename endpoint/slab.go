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
// holds. The transactions of a frame are neighbours in Conn.posted. There are as
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
func (c *Conn) buffer() []byte {
	size := c.ep.headroom + c.frameMax
	s := c.slab
	if s == nil || len(s.mem)-s.used < size {
		if size > slabSize {
			s = &slab{mem: make([]byte, size)}
		} else {
			s = slabs.Get().(*slab)
		}
		c.slab = s
	}
	return s.mem[s.used : s.used+size : s.used+size]
}

// keep remembers a frame in flight: its bytes, which are the beginning of what
// buffer returned, and whose messages it holds.
func (c *Conn) keep(q frame.Seq, buf []byte, first *Transaction, n int) {
	c.follow()
	s := c.slab
	c.out[int(q)&(len(c.out)-1)] = outFrame{s, first, uint32(len(buf)), uint16(s.used), uint16(n)}
	s.used += len(buf)
	s.held++
}

// discard forgets a frame that is not in flight any more. If it is being sent at
// this moment, its memory must wait.
func (c *Conn) discard(o *outFrame) {
	if c.batched == c.ep.batch.number.Load() {
		c.leaving = append(c.leaving, o.slab)
	} else {
		c.release(o.slab)
	}
	*o = outFrame{}
}

// releaseSent releases what was being sent, if it was sent meanwhile.
func (c *Conn) releaseSent() {
	if len(c.leaving) == 0 || c.batched == c.ep.batch.number.Load() {
		return
	}
	for i, s := range c.leaving {
		c.release(s)
		c.leaving[i] = nil
	}
	c.leaving = c.leaving[:0]
}

func (c *Conn) release(s *slab) {
	if s.held--; s.held > 0 {
		return
	}
	if c.slab == s {
		c.slab = nil
	}
	if s.used = 0; len(s.mem) == slabSize {
		slabs.Put(s)
	}
}
