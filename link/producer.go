package link

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Producer is the half of a link that sends. Its methods may be called from any
// goroutine; messages go in the order in which they are committed.
type Producer struct {
	link  *Link
	wire  outWire
	bytes []byte // buffers of our own, one for each of the consumer's
	slots []outSlot

	turn     turn   // guards what follows
	acquired uint64 // buffers handed out
	closed   bool   // end of file was sent
	opcode   uint8

	committed atomic.Uint64
	returned  atomic.Uint64 // buffers that the consumer gave back
	done      atomic.Uint64 // transactions, in any order
	lost      atomic.Bool   // some failed
	waiting   waiting
	goal      goal
}

// outWire is where the consumer wants things, and how it gives buffers back.
type outWire struct {
	buffers   uint64
	size      int
	data      uint32
	pitch     uint32
	flags     uint32
	flagPitch uint32
	returns   returns
}

// returns is how a producer learns of free buffers.
type returns uint8

const (
	returnsCounted returns = iota // a word holds how many were given back in all
	returnsEach                   // a word for each buffer is written when it is free
)

// goal is what the goroutine with the turn waits for: a free buffer, or that all
// is acknowledged.
type goal struct {
	p     *Producer
	drain bool
}

func (g *goal) ready() bool {
	p := g.p
	if g.drain {
		return p.done.Load() == p.committed.Load()
	}
	k := p.acquired
	return k-p.returned.Load() < p.wire.buffers && !p.slots[k%p.wire.buffers].busy.Load()
}

// outSlot is a buffer and the transaction that carries it.
type outSlot struct {
	p       *Producer
	t       dgrdma.Transaction
	segment [1]dgrdma.Segment
	busy    atomic.Bool // posted and not done
	free    atomic.Bool // with returnsEach: given back out of turn
}

// Buffer is a buffer to be filled and committed.
type Buffer struct {
	Bytes []byte // as long as a message can be
	turn  uint64
}

func newProducer(l *Link) *Producer {
	p := &Producer{link: l}
	p.turn.init()
	p.goal.p = p
	p.waiting.init()
	return p
}

// begin is called when it is known where the consumer wants things.
func (p *Producer) begin(w outWire) {
	p.wire = w
	p.bytes = make([]byte, w.buffers*uint64(w.size))
	p.slots = make([]outSlot, w.buffers)
	for i := range p.slots {
		p.slots[i].p = p
	}
}

// Buffers returns how many buffers the consumer has, and how long they are.
func (p *Producer) Buffers() (n, size int) { return int(p.wire.buffers), p.wire.size }

// Acquire waits for a free buffer. Several may be acquired before the first is
// committed; they are committed in the same order.
func (p *Producer) Acquire(ctx context.Context) (Buffer, error) {
	if err := p.turn.take(ctx); err != nil {
		return Buffer{}, err
	}
	defer p.turn.give()
	return p.acquire(ctx)
}

// TryAcquire returns a free buffer, if there is one at this moment.
func (p *Producer) TryAcquire() (Buffer, bool) {
	if !p.turn.try() {
		return Buffer{}, false
	}
	defer p.turn.give()
	if p.closed || p.link.failed() != nil || !p.goal.ready() {
		return Buffer{}, false
	}
	return p.next(), true
}

func (p *Producer) acquire(ctx context.Context) (Buffer, error) {
	if p.closed {
		return Buffer{}, p.link.wrap("send to", ErrClosed)
	}
	if err := p.link.failed(); err != nil {
		return Buffer{}, err
	}
	if !p.goal.ready() {
		if err := p.waiting.until(ctx, p.link, p.link.down, &p.goal); err != nil {
			return Buffer{}, err
		}
	}
	return p.next(), nil
}

// next hands out the next buffer, which is free.
func (p *Producer) next() Buffer {
	k := p.acquired
	p.acquired++
	at := k % p.wire.buffers * uint64(p.wire.size)
	return Buffer{Bytes: p.bytes[at : at+uint64(p.wire.size) : at+uint64(p.wire.size)], turn: k}
}

// Commit sends the first n bytes of a buffer as a message, and returns at once.
// The buffer belongs to the link again.
func (p *Producer) Commit(b Buffer, opcode uint8, n int) error {
	if n < 0 || n > p.wire.size {
		return p.link.wrap("send to", fmt.Errorf("%d bytes, at most %d: %w", n, p.wire.size, ErrTooLong))
	}
	if err := p.turn.take(context.Background()); err != nil {
		return err
	}
	defer p.turn.give()
	return p.commit(b, PackFlag(n, opcode, false))
}

func (p *Producer) commit(b Buffer, f Flag) error {
	k := p.committed.Load()
	if b.turn != k || k == p.acquired {
		return p.link.wrap("send to", ErrOutOfTurn)
	}
	i := k % p.wire.buffers
	s := &p.slots[i]
	s.t.Segments = nil
	if n := f.Length(); n > 0 {
		s.segment[0] = dgrdma.Segment{Addr: p.wire.data + uint32(i)*p.wire.pitch, Bytes: p.bytes[i*uint64(p.wire.size):][:n:n]}
		s.t.Segments = s.segment[:]
	}
	s.t.CompletionAddr, s.t.CompletionValue = p.wire.flags+uint32(i)*p.wire.flagPitch, uint32(f)
	s.t.Done, s.t.Cookie = sent, s
	s.busy.Store(true)
	p.committed.Store(k + 1)
	if err := p.link.post(&s.t); err != nil {
		sent(&s.t, err)
		return p.link.Err()
	}
	return nil
}

// sent is called when a message is acknowledged, or never will be.
func sent(t *dgrdma.Transaction, err error) {
	s := t.Cookie.(*outSlot)
	p := s.p
	if err != nil {
		p.lost.Store(true)
		p.link.fail(err)
	}
	s.busy.Store(false)
	p.done.Add(1)
	p.rouse()
	p.link.settled()
}

// Send waits for a free buffer and sends a copy of b as a message.
func (p *Producer) Send(ctx context.Context, opcode uint8, b []byte) error {
	if len(b) > p.wire.size {
		return p.link.wrap("send to", fmt.Errorf("%d bytes, at most %d: %w", len(b), p.wire.size, ErrTooLong))
	}
	if err := p.turn.take(ctx); err != nil {
		return err
	}
	defer p.turn.give()
	return p.copy(ctx, PackFlag(len(b), opcode, false), b)
}

func (p *Producer) copy(ctx context.Context, f Flag, b []byte) error {
	if p.acquired != p.committed.Load() {
		return p.link.wrap("send to", ErrOutOfTurn) // who acquired buffers commits them first
	}
	out, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	copy(out.Bytes, b)
	return p.commit(out, f)
}

// Flush waits until everything that was sent is acknowledged: the consumer has
// it in its memory.
func (p *Producer) Flush(ctx context.Context) error {
	if err := p.turn.take(ctx); err != nil {
		return err
	}
	defer p.turn.give()
	return p.flush(ctx)
}

func (p *Producer) flush(ctx context.Context) error {
	p.goal.drain = true
	defer func() { p.goal.drain = false }()
	if !p.goal.ready() {
		// A link that is down does not matter: what is under way ends one way or
		// the other, and may have arrived.
		if err := p.waiting.until(ctx, p.link, nil, &p.goal); err != nil {
			return err
		}
	}
	if p.lost.Load() {
		return p.link.Err()
	}
	return nil
}

// Close sends end of file and waits until all is acknowledged.
func (p *Producer) Close() error { return p.CloseContext(context.Background()) }

// CloseContext is Close that waits no longer than the context. A buffer that was
// acquired and not committed is forgotten.
func (p *Producer) CloseContext(ctx context.Context) error {
	if err := p.turn.take(ctx); err != nil {
		return err
	}
	defer p.turn.give()
	if p.closed {
		return nil
	}
	p.acquired = p.committed.Load()
	err := p.copy(ctx, PackFlag(0, 0, true), nil)
	p.closed = true
	if err != nil {
		return err
	}
	return p.flush(ctx)
}

// takeWord implements wordTaker: the consumer gives buffers back.
func (p *Producer) takeWord(i int, value uint32) {
	was := p.returned.Load()
	switch p.wire.returns {
	case returnsCounted:
		n := uint64(value - uint32(was)) // since then
		if was+n > p.committed.Load() {
			p.link.fail(fmt.Errorf("buffers came back that were not sent: %w", ErrProtocol))
			return
		}
		p.returned.Store(was + n)
	case returnsEach:
		if value&1 == 0 || uint64(i) >= p.wire.buffers {
			return
		}
		p.slots[i].free.Store(true)
		for was < p.committed.Load() && p.slots[was%p.wire.buffers].free.Swap(false) {
			was++
		}
		p.returned.Store(was)
	}
	p.rouse()
}

// rouse wakes who waits, if that is worth it: when a quarter of the buffers is
// free, or nothing is under way that would bring us here again.
func (p *Producer) rouse() {
	if !p.waiting.asleep.Load() {
		return
	}
	committed := p.committed.Load()
	used := max(committed-p.returned.Load(), committed-p.done.Load())
	if used <= p.wire.buffers-p.wire.buffers/4 || committed == p.done.Load() {
		p.waiting.rouse()
	}
}

// released implements wordTaker. Credits are words and no data.
func (p *Producer) released() uint64 { return 0 }
