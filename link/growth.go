package link

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/space"
)

// A consumer whose buffers are too few for a path takes a larger ring of them, and tells the producer
// where it is (letterGrow). The producer fills it from its next message on, and tells which one that is
// (letterGrown). Messages before that are still in the ring before, whose memory is given back when the
// application has released them. So each side needs one round trip, in which messages go on.

const (
	// mostGrown is how many bytes a ring has that grew. Arbitrary: 300 ms of 100 Mbit/s are 4 MiB, and a ring
	// grows to twice to eight times of what it moves in a round trip.
	mostGrown = 16 << 20
	// growBy is how many times as many buffers a ring gets. Arbitrary: more than what congestion control adds
	// in the two round trips that it takes.
	growBy = 4
	// growthShare is which share of the host's free memory a ring gets at most when it grows.
	growthShare = 4
	// farTrip is the shortest round trip of a path that has rings grow. With a shorter one memory is nearer than
	// the peer: more of it makes a link slower. Arbitrary.
	farTrip = 4 * time.Millisecond
)

// inRing is buffers of a consumer: message k is in buffer k modulo their number.
type inRing struct {
	buffers, pitch uint64
	at             uint64 // where the first one is
	bytes          []byte // the buffers, in the endpoint's memory
	words          words  // where the producer writes flags
	flags          []atomic.Uint32
	partial        []partial // one for each buffer; nil for peers of other kinds; of the receive goroutine
	span           space.Span
}

func newInRing(h *half, data []byte, counts bool) *inRing {
	r := &inRing{
		buffers: uint64(h.Buffers), pitch: uint64(h.Pitch), at: uint64(h.Data), bytes: data,
		flags: make([]atomic.Uint32, h.Buffers), words: wordsAt(h.Flags, h.Buffers, h.FlagPitch),
	}
	if counts {
		r.partial = make([]partial, h.Buffers)
	}
	return r
}

// flag returns the flag of the buffer of message k.
func (r *inRing) flag(k uint64) *atomic.Uint32 { return &r.flags[k%r.buffers] }

// full returns how many buffers have messages.
func (r *inRing) full() (n int) {
	for i := range r.flags {
		if r.flags[i].Load() != 0 {
			n++
		}
	}
	return n
}

// inRings says which message is in which ring. It is replaced, never changed.
type inRings struct {
	before, now *inRing // the same, if no message in the one before is held
	from        uint64  // the first message in now
}

// growth is what a consumer needs to have more buffers.
type growth struct {
	allowed bool
	busy    atomic.Bool            // a ring was offered, or the one before is not released
	offered atomic.Pointer[inRing] // granted to the producer, which has not said from which message on it fills it
	tryAt   atomic.Uint64          // how many messages have arrived when it is tried again, for there was no memory
}

// ringOf returns the ring that message k is in. Until the producer says that it is in a larger one, that
// is the smaller one, where it does not arrive.
func (c *Consumer) ringOf(k uint64) *inRing {
	if all := c.rings.Load(); k >= all.from {
		return all.now
	} else {
		return all.before
	}
}

// flagAt returns which flag is at an address, and of which ring; -1: none.
func (c *Consumer) flagAt(addr uint64) (r *inRing, i int) {
	all := c.rings.Load()
	if i = all.now.words.index(addr); i >= 0 {
		return all.now, i
	}
	if all.before != all.now {
		if i = all.before.words.index(addr); i >= 0 {
			return all.before, i
		}
	}
	if r = c.growth.offered.Load(); r != nil {
		return r, r.words.index(addr)
	}
	return nil, -1
}

// considerGrowth is called when a word was acknowledged that gave buffers back, after some time in which
// messages arrived: about a round trip. When these are half of the buffers, the producer had to wait
// for them, or soon will.
func (c *Consumer) considerGrowth(took time.Duration, arrived uint64) {
	n := c.credits.buffers.Load()
	if took < farTrip || 2*arrived < n || c.growth.busy.Load() || c.arrived.Load() < c.growth.tryAt.Load() {
		return
	}
	if c.link.peer.conn.Stats().MinRTT < farTrip || c.growth.busy.Swap(true) {
		return
	}
	if !c.offer(n) {
		c.growth.tryAt.Store(c.arrived.Load() + 16*n)
		c.growth.busy.Store(false)
	}
}

// offer takes memory for a larger ring than one of n buffers, and offers it to the producer. Not ok: there is none.
func (c *Consumer) offer(n uint64) (ok bool) {
	l := c.link
	h := half{Size: uint32(c.size)}
	h.setPitches()
	each := uint64(h.Pitch) + uint64(h.FlagPitch)
	more := min(growBy*n, mostGrown/each, mostBuffers, l.host.freeMemory()/growthShare/each)
	if more < 2*n {
		return false
	}
	h.Buffers = uint32(more)
	s, ok := l.peer.takeMore(h.memory())
	if !ok {
		return false
	}
	at := uint32(s.At)
	h.Data, h.Flags = at, at+h.Buffers*h.Pitch
	r := newInRing(&h, l.host.block.Bytes(s)[:h.Buffers*h.Pitch], true)
	r.span = s
	l.mu.Lock()
	over := l.released || l.peerGone || l.peerClosed || l.mustNotPost()
	if !over {
		l.grown = append(l.grown, s)
		c.growth.offered.Store(r)
		l.peer.grants.Add(s, l)
	}
	grow := letter{kind: letterGrow, from: l.number, to: l.remoteNumber, attempt: l.attempt, out: h}
	l.mu.Unlock()
	if over {
		l.host.block.Give(s)
		return false
	}
	l.peer.send(l.life, grow)
	return true
}

// freeMemory returns how many bytes no link has.
func (h *Host) freeMemory() (n uint64) {
	for _, f := range h.block.Free() {
		n += f.N
	}
	return n
}

// takeMore is takeMemory for a link that can do without.
func (p *peer) takeMore(n uint64) (space.Span, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.host.block.Take(n, p.quarantine...)
}

// takeGrowth takes a letter about larger rings.
func (l *Link) takeGrowth(a *letter) {
	switch {
	case l.plain || l.mustNotPost(): // it says nothing to a link that ends
	case a.kind == letterGrow && l.Out != nil:
		first, ok := l.Out.grow(&a.out)
		if !ok {
			l.fail(fmt.Errorf("it offers buffers that are no more, or cannot be written to: %w", ErrProtocol))
			return
		}
		l.mu.Lock()
		done := letter{kind: letterGrown, from: l.number, to: l.remoteNumber, attempt: l.attempt, first: uint32(first)}
		l.mu.Unlock()
		l.peer.send(l.life, done)
	case a.kind == letterGrown && l.In != nil:
		l.In.fillsFrom(a.first)
	}
}

// grow has messages go into a larger ring from the next one that is committed on, which it returns. Not ok: the
// ring is not a larger one.
func (p *Producer) grow(h *half) (first uint64, ok bool) {
	if !p.hasLayout.Load() || !h.isValid() || int(h.Size) != p.layout.size || p.layout.returns != returnsCounted {
		return 0, false
	}
	p.mu.Lock()
	if uint64(h.Buffers) < 2*p.layout.buffers {
		p.mu.Unlock()
		return 0, false
	}
	l := &p.layout
	l.buffers, l.data, l.pitch, l.flags, l.flagPitch = uint64(h.Buffers), h.Data, h.Pitch, h.Flags, h.FlagPitch
	p.buffers.Store(l.buffers)
	first = p.committed.Load()
	p.mu.Unlock()
	p.sendEnd()
	p.waiting.Rouse()
	return first, true
}

// fillsFrom notes from which message on the producer fills the ring that it was offered: one that the one before
// has room for. It runs on the receive goroutine.
func (c *Consumer) fillsFrom(low uint32) {
	r := c.growth.offered.Load()
	all := c.rings.Load()
	freed := c.freed.Load()
	from := freed + uint64(low-uint32(freed))
	if r == nil || from < c.received.Load() || from-freed > all.now.buffers {
		c.link.fail(fmt.Errorf("it fills buffers from message %d on that it was not offered: %w", low, ErrProtocol))
		return
	}
	c.rings.Store(&inRings{before: all.now, now: r, from: from})
	c.growth.offered.Store(nil)
	c.credits.buffers.Store(r.buffers)
	c.leaveRing(c.freed.Load())
	if c.handle != nil {
		c.callHandler()
	}
	c.credits.messageReceived()
	c.waiting.Rouse()
}

// leaveRing gives the memory of the ring before back when all messages before freed were released, and
// it has none of them. The first one stays: it has words of the other half.
func (c *Consumer) leaveRing(freed uint64) {
	all := c.rings.Load()
	if all.before == all.now || freed < all.from || !c.rings.CompareAndSwap(all, &inRings{all.now, all.now, all.from}) {
		return
	}
	if all.before != c.first {
		c.link.giveBack(all.before.span)
	}
	c.growth.busy.Store(false)
}

// giveBack gives the memory of a ring back that the producer does not write to any more.
func (l *Link) giveBack(s space.Span) {
	l.mu.Lock()
	i := slices.Index(l.grown, s)
	if l.released || i < 0 {
		l.mu.Unlock()
		return // it is given back with the rest
	}
	l.grown = slices.Delete(slices.Clone(l.grown), i, i+1)
	l.mu.Unlock()
	l.peer.grants.Remove(s.At, l)
	l.host.ep.AfterBatch(func() { l.host.block.Give(s) })
}

// spans returns the memory of a link.
func (l *Link) spans() []space.Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]space.Span{l.memory}, l.grown...)
}
