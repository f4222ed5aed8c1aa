package link

import (
	"math/bits"
	"sync"
)

// Messages to be sent lie in chunks, whose lengths are powers of two: so what a peer says
// of its buffers decides nothing, and a chunk serves messages of all links to a peer.
const (
	leastChunk = 64
	mostChunk  = MaxMessage + 1
	classes    = 16 // of the lengths from leastChunk to mostChunk
)

// chunk is memory for a message to be sent.
type chunk struct{ bytes []byte }

// classOf returns which chunks hold n bytes.
func classOf(n int) int { return bits.Len(uint(max(n, leastChunk)-1)) - bits.Len(leastChunk-1) }

// charge is what a message of n bytes takes.
func charge(n int) int64 {
	if n == 0 {
		return 0
	}
	return leastChunk << classOf(n)
}

// spare is chunks that no message is in. They are of one peer, so that a program that
// sends more of a buffer than it wrote shows the peer only what went to that peer before. The
// garbage collector takes those that were not used for a while.
type spare [classes]sync.Pool

func (s *spare) take(n int) *chunk {
	if n == 0 {
		return nil
	}
	k := classOf(n)
	if c, ok := s[k].Get().(*chunk); ok {
		return c
	}
	return &chunk{make([]byte, leastChunk<<k)}
}

func (s *spare) give(c *chunk) { s[classOf(len(c.bytes))].Put(c) }

// take counts n bytes of the host's budget. Not ok: it has no room for them, or the link is over.
func (p *Producer) take(n int64) (ok bool) {
	if !p.link.host.budget.take(p.link.peer, n) {
		return false
	}
	p.held.Add(n)
	if p.link.silent() && n > 0 { // what drop saw is not known
		p.give(n)
		return false
	}
	return true
}

// give counts n bytes off, unless drop did.
func (p *Producer) give(n int64) {
	for {
		held := p.held.Load()
		if held < n || n == 0 {
			return
		}
		if p.held.CompareAndSwap(held, held-n) {
			p.link.host.budget.give(p.link.peer, n)
			return
		}
	}
}

// drop counts off all that the link has, which is over.
func (p *Producer) drop() {
	p.link.host.budget.note(p, false)
	if n := p.held.Swap(0); n > 0 {
		p.link.host.budget.give(p.link.peer, n)
	}
}

// giveBack makes the memory of a message free for others.
func (p *Producer) giveBack(s *outSlot) {
	if c := s.chunk; c != nil {
		s.chunk = nil
		p.link.peer.spare.give(c)
		p.give(int64(len(c.bytes)))
	}
}

// wasteful is how many times as long as what is in it a chunk may be that waits for an
// acknowledgement. Arbitrary: what is copied costs less than to send it.
const wasteful = 4

// shrink puts n bytes that fill little of a slot's chunk into a shorter one.
func (p *Producer) shrink(s *outSlot, n int) {
	c := s.chunk
	if c == nil || charge(n)*wasteful > int64(len(c.bytes)) {
		return
	}
	s.chunk = p.link.peer.spare.take(n)
	if s.chunk != nil {
		copy(s.chunk.bytes, c.bytes[:n])
		p.held.Add(charge(n))
		p.link.host.budget.swap(p.link.peer, charge(n))
	}
	p.link.peer.spare.give(c)
	p.give(int64(len(c.bytes)))
}
