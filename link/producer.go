package link

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Producer is the half of a link that sends. Its methods may be called from any
// goroutine; messages go in the order in which they are committed.
type Producer struct {
	link   *Link
	begun  atomic.Bool // wire and slots are set
	wire   outWire
	words  words         // where the consumer writes credits
	freed  []atomic.Bool // with returnsEach: buffers given back out of turn
	ring   ring
	opcode uint8

	turn turn       // who waits, or sends what it has itself; held while it waits
	mu   sync.Mutex // guards changes of closed, owesEnd, acquired and committed; never held for long

	keeps     bool          // a buffer for end of file: see Options.KeepForEnd
	closed    atomic.Bool   // nothing is sent any more but the end of file that is owed
	owesEnd   atomic.Bool   // end of file waits for a buffer: see Finish
	endLeaves atomic.Bool   // and has one, but is not posted yet
	acquired  atomic.Uint64 // buffers handed out
	committed atomic.Uint64
	returned  atomic.Uint64 // buffers that the consumer gave back
	done      atomic.Uint64 // transactions, in any order
	bytes     atomic.Uint64 // of messages committed
	lost      atomic.Bool   // some failed
	taken     atomic.Bool   // the peer said that it had end of file, whatever is acknowledged
	waiting   waiting

	held   atomic.Int64 // bytes of the host's budget
	wants  atomic.Int64 // bytes of it that the goroutine with the turn waits for
	hungry atomic.Bool  // it does, see budget

	unpacked atomic.Int64 // bytes that were committed and are not in frames yet
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

// hasFree and drained are what goroutines wait for.
type (
	hasFree Producer
	drained Producer
)

// usable returns how many buffers messages may be in.
func (p *Producer) usable() uint64 {
	n := p.wire.buffers
	if p.keeps && n > 1 {
		n--
	}
	return n
}

// ahead returns how much may wait to be sent, however many buffers the peer offers.
func (p *Producer) ahead() int64 { return int64(p.link.host.ep.Ahead()) }

// ready reports whether there is a free buffer and memory for it, or never will be for the
// goroutine that waits.
func (f *hasFree) ready() bool {
	p := (*Producer)(f)
	switch budget := &p.link.host.budget; {
	case p.closed.Load():
		return true
	case !p.hasFree():
		return false
	case budget.fits(p.link.peer, p.needs()):
		return true
	default:
		budget.enter(p)
		return budget.fits(p.link.peer, p.needs()) // given before it was entered
	}
}

// needs returns how many bytes of the budget the goroutine with the turn waits for: those of its
// message, and of the slots that it takes.
func (p *Producer) needs() int64 { return p.wants.Load() + p.ring.growth(p.acquired.Load()) }

// hasFree reports whether there is a free buffer. A quarter of them is never handed out
// ahead: the consumer may keep as many to itself before it says so.
func (p *Producer) hasFree() bool {
	if p.unpacked.Load() > p.ahead() {
		return false
	}
	n, k := p.wire.buffers, p.acquired.Load()
	return k-p.returned.Load() < p.usable() && k-p.committed.Load() < n-n/4 && p.ring.room(k)
}

func (d *drained) ready() bool { return d.done.Load() == d.committed.Load() && !d.owesEnd.Load() }

// Buffer is a buffer to be filled and committed.
type Buffer struct {
	Bytes []byte // as long as a message can be
	turn  uint64
}

func newProducer(l *Link, o *Options) *Producer {
	p := &Producer{link: l, opcode: o.Opcode, keeps: o.KeepForEnd}
	p.turn.init()
	p.waiting.init(l.host)
	return p
}

// begin is called when it is known where the consumer wants things.
func (p *Producer) begin(w outWire) {
	p.wire = w
	p.ring.init(p, w.buffers)
	if w.returns == returnsEach {
		p.freed = make([]atomic.Bool, w.buffers)
	}
	p.begun.Store(true)
}

// Buffers returns how many buffers the consumer has, and how long they are.
func (p *Producer) Buffers() (n, size int) {
	if p == nil {
		return 0, 0
	}
	return int(p.wire.buffers), p.wire.size
}

// Acquire waits for a free buffer, and for memory to fill: see Config.Memory. Several may
// be acquired before the first is committed, up to three quarters of all, and to 4096; they are
// committed in the same order. With a context that is done none is taken, also if one is free:
// the error is the context's cause, or why the link failed.
func (p *Producer) Acquire(ctx context.Context) (Buffer, error) { return p.acquireSome(ctx, mostSize) }

// TryAcquire returns a free buffer, if there is one at this moment.
func (p *Producer) TryAcquire() (Buffer, bool) {
	if p == nil || !p.begun.Load() || p.link.failed() != nil {
		return Buffer{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next(p.wire.size)
}

// acquire returns a buffer of size bytes. It is called with the turn.
func (p *Producer) acquire(ctx context.Context, size int) (Buffer, error) {
	p.wants.Store(charge(size))
	defer p.link.host.budget.leave(p)
	for {
		failed := p.link.failed()
		p.mu.Lock()
		closed := p.closed.Load()
		var b Buffer
		var ok bool
		late := ctx.Err() != nil
		if failed == nil && !late {
			b, ok = p.next(size)
		}
		p.mu.Unlock()
		switch {
		case closed: // by this side, whatever the peer did since
			return Buffer{}, p.link.wrap("send to", ErrClosed)
		case failed != nil:
			return Buffer{}, failed
		case late:
			return Buffer{}, context.Cause(ctx)
		case ok:
			return b, nil
		}
		p.waiting.until(ctx, p.link, p.link.down, (*hasFree)(p)) // what ended it is seen above
	}
}

// next hands out the next buffer, of size bytes, if it is free. Guarded by mu.
func (p *Producer) next(size int) (Buffer, bool) {
	k := p.acquired.Load()
	if p.closed.Load() || !p.hasFree() {
		return Buffer{}, false
	}
	s := p.ring.take(k, charge(size))
	if s == nil {
		return Buffer{}, false
	}
	p.acquired.Store(k + 1)
	s.chunk = p.link.peer.spare.take(size)
	b := Buffer{Bytes: nothing, turn: k}
	if s.chunk != nil {
		b.Bytes = s.chunk.bytes[:size:size]
	}
	return b, true
}

// nothing is a buffer for a message of no bytes.
var nothing = []byte{}

// Commit sends the first n bytes of a buffer as a message, and returns at once.
// The buffer belongs to the link again.
func (p *Producer) Commit(b Buffer, opcode uint8, n int) error {
	if p == nil {
		return ErrNoHalf
	}
	if n < 0 || n > p.wire.size {
		return p.link.wrap("send to", fmt.Errorf("%d bytes, at most %d: %w", n, p.wire.size, ErrTooLong))
	}
	return p.commit(b, PackFlag(n, opcode, false))
}

func (p *Producer) commit(b Buffer, f Flag) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.committed.Load()
	switch {
	case b.Bytes != nil && p.closed.Load():
		return p.link.wrap("send to", ErrClosed)
	case b.Bytes != nil && b.turn < k:
		return p.link.wrap("send to", sentAlready)
	case b.turn != k || k == p.acquired.Load() || b.Bytes == nil:
		return p.link.wrap("send to", ErrOutOfTurn)
	}
	p.shrink(p.ring.at(k), f.Length())
	return p.put(k, f)
}

// put sends message k, which is in its slot and the next. Guarded by mu.
func (p *Producer) put(k uint64, f Flag) error {
	i := k % p.wire.buffers
	s := p.ring.at(k)
	n := f.Length()
	s.segment[0] = dgrdma.Segment{Addr: p.wire.data + uint32(i)*p.wire.pitch}
	if n > 0 {
		s.segment[0].Bytes = s.chunk.bytes[:n:n]
	}
	s.t.Segments = s.segment[:]
	s.t.Completion = dgrdma.Word(p.wire.flags+uint32(i)*p.wire.flagPitch, uint32(f))
	s.t.Done, s.t.Packed, s.t.Cookie = sent, packed, s
	p.unpacked.Add(int64(n))
	p.bytes.Store(p.bytes.Load() + uint64(n))
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
	if err != nil && !(p.taken.Load() && p.closed.Load()) {
		p.lost.Store(true)
		p.link.fail(err)
	}
	p.giveBack(s)
	s.busy.Store(false)
	p.done.Add(1)
	p.checkIdle()
	p.sendEnd()
	p.rouse()
	p.link.settled()
}

// packed is called when a message's bytes are in frames.
func packed(t *dgrdma.Transaction) {
	p := t.Cookie.(*outSlot).p
	n, half := int64(Flag(t.Completion.Value()).Length()), p.ahead()/2
	if left := p.unpacked.Add(-n); left <= half && left+n > half {
		p.rouse()
	}
}

// Send waits for a free buffer and sends a copy of b as a message. Several
// goroutines that send take turns; while one has acquired buffers that it did not
// commit, the others get ErrOutOfTurn. With a context that is done it sends nothing,
// also if a buffer is free: the error is the context's cause, or why the link failed.
func (p *Producer) Send(ctx context.Context, opcode uint8, b []byte) error {
	if p == nil {
		return ErrNoHalf
	}
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
	if p.acquired.Load() != p.committed.Load() {
		return p.link.wrap("send to", heldByCaller)
	}
	out, err := p.acquire(ctx, len(b))
	if err != nil {
		return err
	}
	copy(out.Bytes, b)
	return p.commit(out, f)
}

// Flush waits until everything that was sent is acknowledged: the consumer has
// it in its memory. That wins over a context that is done.
func (p *Producer) Flush(ctx context.Context) error {
	if p == nil {
		return ErrNoHalf
	}
	if err := p.turn.take(ctx); err != nil {
		return err
	}
	defer p.turn.give()
	return p.flush(ctx)
}

func (p *Producer) flush(ctx context.Context) error {
	// A link that is down does not matter: what is under way ends one way or the
	// other, and may have arrived.
	if err := p.waiting.until(ctx, p.link, nil, (*drained)(p)); err != nil {
		return err
	}
	if p.lost.Load() {
		return p.link.Err()
	}
	return nil
}

// takeWord takes a credit: the consumer gives buffers back.
func (p *Producer) takeWord(i int, value uint32) {
	if !p.begun.Load() {
		return // it was not told of the word yet
	}
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
		if value&1 == 0 {
			return
		}
		p.freed[i].Store(true)
		for was < p.committed.Load() && p.freed[was%p.wire.buffers].Swap(false) {
			was++
		}
		p.returned.Store(was)
	}
	p.sendEnd()
	p.rouse()
}

// rouse wakes who waits, if that is worth it: when a quarter of the buffers is
// free, or nothing is under way that would bring us here again.
func (p *Producer) rouse() {
	if !p.waiting.Asleep() {
		return
	}
	committed := p.committed.Load()
	used := max(committed-p.returned.Load(), committed-p.done.Load())
	if used <= p.wire.buffers-p.wire.buffers/4 || committed == p.done.Load() {
		p.waiting.Rouse()
	}
}
