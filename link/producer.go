package link

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link/budget"
)

// Producer is the half of a link that sends. Its methods may be called from any goroutine. Messages
// are sent in the order in which they are committed.
type Producer struct {
	link      *Link
	hasLayout atomic.Bool   // layout and ring are set
	layout    outLayout     // its size does not change; the rest is guarded by mu
	buffers   atomic.Uint64 // that the consumer has; changed with mu held
	words     words         // where the consumer writes credits
	freed     []atomic.Bool // with returnsEach: buffers given back out of order
	ring      ring
	opcode    uint8

	token token      // of the goroutine that waits, or sends a copy; held while it waits
	mu    sync.Mutex // guards changes of closed, endPending, acquired and committed; never held for long

	keepsForEnd bool          // a buffer for end of file: see Options.KeepForEnd
	closed      atomic.Bool   // only a pending end of file is sent any more
	endPending  atomic.Bool   // end of file waits for a buffer: see Finish
	endPosting  atomic.Bool   // it has a buffer, and is not posted yet
	acquired    atomic.Uint64 // buffers handed out
	committed   atomic.Uint64
	returned    atomic.Uint64 // buffers that the consumer gave back
	done        atomic.Uint64 // transactions, in any order
	bytes       atomic.Uint64 // of messages committed
	lost        atomic.Bool   // some failed
	peerHasAll  atomic.Bool   // the peer said that it had end of file, whatever is acknowledged
	waiting     waiting

	share  budget.Share // of the host's memory for messages
	wanted atomic.Int64 // bytes of it that the goroutine with the send token waits for

	unbuilt atomic.Int64 // bytes that were committed and are not in frames yet
}

// hasFree and drained are conditions that goroutines wait for.
type (
	hasFree Producer
	drained Producer
)

// usable returns how many buffers messages may be in.
func (p *Producer) usable() uint64 {
	n := p.buffers.Load()
	if p.keepsForEnd && n > 1 {
		n--
	}
	return n
}

// maxUnbuilt returns how many bytes may wait to be sent, however many buffers the peer offers.
func (p *Producer) maxUnbuilt() int64 { return int64(p.link.host.ep.Ahead()) }

// isReady reports whether there is a free buffer and memory for it, or whether the goroutine that
// waits can never have them.
func (f *hasFree) isReady() bool {
	p := (*Producer)(f)
	switch {
	case p.closed.Load():
		return true
	case !p.hasFree():
		return false
	case p.share.Fits(p.neededBudget()):
		return true
	default:
		p.share.Wait()
		return p.share.Fits(p.neededBudget()) // bytes may have been uncharged before Wait
	}
}

// neededBudget returns how many bytes of the budget the goroutine with the send token waits for: those
// of its message, and of the slots that it makes necessary.
func (p *Producer) neededBudget() int64 { return p.wanted.Load() + p.ring.growth(p.acquired.Load()) }

// hasFree reports whether there is a free buffer. A quarter of the buffers is never handed out ahead:
// the consumer may keep as many to itself before it says so.
func (p *Producer) hasFree() bool {
	if p.unbuilt.Load() > p.maxUnbuilt() {
		return false
	}
	n, k := p.buffers.Load(), p.acquired.Load()
	return k-p.returned.Load() < p.usable() && k-p.committed.Load() < n-n/4 && p.ring.hasRoom(k)
}

func (d *drained) isReady() bool { return d.done.Load() == d.committed.Load() && !d.endPending.Load() }

// Buffer is a buffer to be filled and committed.
type Buffer struct {
	Bytes  []byte // as long as a message can be
	number uint64
}

func newProducer(l *Link, o *Options) *Producer {
	p := &Producer{link: l, opcode: o.Opcode, keepsForEnd: o.KeepForEnd}
	p.token.init()
	p.waiting.init(l.host)
	p.share.Init(&l.host.budget, &l.peer.budget, p.waiting.Rouse, p.shrinkRing)
	return p
}

// setLayout is called when it is known where the consumer wants messages.
func (p *Producer) setLayout(w outLayout) {
	p.layout = w
	p.buffers.Store(w.buffers)
	p.ring.init(p)
	if w.returns == returnsEach {
		p.freed = make([]atomic.Bool, w.buffers)
	}
	p.hasLayout.Store(true)
}

// Buffers returns how many buffers the consumer has, and how long they are.
func (p *Producer) Buffers() (n, size int) {
	if p == nil {
		return 0, 0
	}
	return int(p.buffers.Load()), p.layout.size
}

// Acquire waits for a free buffer, and for memory to fill: see Config.Memory. Several may be acquired
// before the first is committed, up to three quarters of all, and to 4096. They are committed in the
// same order. With a context that is done none is taken, also if one is free: the error is the
// context's cause, or why the link failed.
func (p *Producer) Acquire(ctx context.Context) (Buffer, error) { return p.acquireSome(ctx, mostSize) }

// TryAcquire returns a free buffer, if there is one at this moment.
func (p *Producer) TryAcquire() (Buffer, bool) {
	if p == nil || !p.hasLayout.Load() || p.link.failure() != nil {
		return Buffer{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeNext(p.layout.size)
}

// acquire returns a buffer of size bytes. The caller has the send token.
func (p *Producer) acquire(ctx context.Context, size int) (Buffer, error) {
	p.wanted.Store(budget.SizeOf(size))
	defer p.share.StopWaiting()
	for {
		failed := p.link.failure()
		p.mu.Lock()
		closed := p.closed.Load()
		var b Buffer
		var ok bool
		late := ctx.Err() != nil
		if failed == nil && !late {
			b, ok = p.takeNext(size)
		}
		p.mu.Unlock()
		switch {
		case closed: // by this side, whatever the peer has done since
			return Buffer{}, p.link.wrap("send to", ErrClosed)
		case failed != nil:
			return Buffer{}, failed
		case late:
			return Buffer{}, context.Cause(ctx)
		case ok:
			return b, nil
		}
		p.waiting.until(ctx, p.link, p.link.down, (*hasFree)(p)) // the loop sees what ended the wait
	}
}

// takeNext hands out the next buffer, of size bytes, if it is free. Guarded by mu.
func (p *Producer) takeNext(size int) (Buffer, bool) {
	k := p.acquired.Load()
	if p.closed.Load() || !p.hasFree() {
		return Buffer{}, false
	}
	s := p.ring.take(k, budget.SizeOf(size))
	if s == nil {
		return Buffer{}, false
	}
	p.acquired.Store(k + 1)
	s.chunk = p.share.Chunk(size)
	b := Buffer{Bytes: nothing, number: k}
	if s.chunk != nil {
		b.Bytes = s.chunk.Bytes[:size:size]
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
	if n < 0 || n > p.layout.size {
		return p.link.wrap("send to", fmt.Errorf("%d bytes, at most %d: %w", n, p.layout.size, ErrTooLong))
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
	case b.Bytes != nil && b.number < k:
		return p.link.wrap("send to", sentAlready)
	case b.number != k || k == p.acquired.Load() || b.Bytes == nil:
		return p.link.wrap("send to", ErrOutOfTurn)
	}
	s := p.ring.at(k)
	s.chunk = p.share.Fit(s.chunk, f.Length())
	return p.post(k, f)
}

// post sends message k, which is in its slot and the next. Guarded by mu.
func (p *Producer) post(k uint64, f Flag) error {
	i := k % p.layout.buffers
	s := p.ring.at(k)
	n := f.Length()
	s.segment[0] = dgrdma.Segment{Addr: p.layout.data + uint32(i)*p.layout.pitch}
	if n > 0 {
		s.segment[0].Bytes = s.chunk.Bytes[:n:n]
	}
	s.t.Segments = s.segment[:]
	s.t.Completion = dgrdma.Word(p.layout.flags+uint32(i)*p.layout.flagPitch, uint32(f))
	s.t.Done, s.t.Packed, s.t.Cookie = messageDone, built, s
	p.unbuilt.Add(int64(n))
	p.bytes.Store(p.bytes.Load() + uint64(n))
	p.committed.Store(k + 1)
	if err := p.link.post(&s.t); err != nil {
		messageDone(&s.t, err)
		return p.link.Err()
	}
	return nil
}

// messageDone is called when a message is acknowledged, or can never be.
func messageDone(t *dgrdma.Transaction, err error) {
	s := t.Cookie.(*outSlot)
	p := s.p
	if err != nil && !(p.peerHasAll.Load() && p.closed.Load()) {
		p.lost.Store(true)
		p.link.fail(err)
	}
	p.freeChunk(s)
	s.busy.Store(false)
	p.done.Add(1)
	p.checkIdle()
	p.sendEnd()
	p.wakeIfWorth()
	p.link.completed()
}

// built is called when a message's bytes are in frames.
func built(t *dgrdma.Transaction) {
	p := t.Cookie.(*outSlot).p
	n, half := int64(Flag(t.Completion.Value()).Length()), p.maxUnbuilt()/2
	if left := p.unbuilt.Add(-n); left <= half && left+n > half {
		p.wakeIfWorth()
	}
}

// Send waits for a free buffer and sends a copy of b as a message. Several goroutines may send: one at
// a time has the send token. While a goroutine has acquired buffers that it did not commit, Send fails
// with ErrOutOfTurn. With a context that is done it sends nothing, also if a buffer is free: the error
// is the context's cause, or why the link failed.
func (p *Producer) Send(ctx context.Context, opcode uint8, b []byte) error {
	if p == nil {
		return ErrNoHalf
	}
	if len(b) > p.layout.size {
		return p.link.wrap("send to", fmt.Errorf("%d bytes, at most %d: %w", len(b), p.layout.size, ErrTooLong))
	}
	if err := p.token.take(ctx); err != nil {
		return err
	}
	defer p.token.give()
	return p.sendCopy(ctx, PackFlag(len(b), opcode, false), b)
}

func (p *Producer) sendCopy(ctx context.Context, f Flag, b []byte) error {
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

// Flush waits until everything that was sent is acknowledged: the consumer has it in its memory. That
// wins over a context that is done.
func (p *Producer) Flush(ctx context.Context) error {
	if p == nil {
		return ErrNoHalf
	}
	if err := p.token.take(ctx); err != nil {
		return err
	}
	defer p.token.give()
	return p.flush(ctx)
}

func (p *Producer) flush(ctx context.Context) error {
	// A link that is down does not matter: what is in flight completes in either case, and may have
	// arrived.
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
	if !p.hasLayout.Load() {
		return // the peer was not told of the word yet
	}
	was := p.returned.Load()
	switch p.layout.returns {
	case returnsCounted:
		n := uint64(value - uint32(was)) // since the last word
		if n > math.MaxInt32 {
			return // a word that was sent later overtook it
		}
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
		for was < p.committed.Load() && p.freed[was%p.layout.buffers].Swap(false) {
			was++
		}
		p.returned.Store(was)
	}
	p.sendEnd()
	p.wakeIfWorth()
}

// wakeIfWorth wakes the goroutine that waits, when a quarter of the buffers is free, or nothing is in
// flight whose completion would call it again.
func (p *Producer) wakeIfWorth() {
	if !p.waiting.Asleep() {
		return
	}
	committed := p.committed.Load()
	used := max(committed-p.returned.Load(), committed-p.done.Load())
	if n := p.buffers.Load(); used <= n-n/4 || committed == p.done.Load() {
		p.waiting.Rouse()
	}
}

// acquireSome is Acquire of size bytes, or of as many as a message can have.
func (p *Producer) acquireSome(ctx context.Context, size int) (Buffer, error) {
	if p == nil {
		return Buffer{}, ErrNoHalf
	}
	if err := p.token.take(ctx); err != nil {
		return Buffer{}, err
	}
	defer p.token.give()
	return p.acquire(ctx, min(size, p.layout.size))
}
