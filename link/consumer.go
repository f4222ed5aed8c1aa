package link

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Consumer is the half of a link that receives. Its methods may be called from
// any goroutine; each message is received once.
type Consumer struct {
	link  *Link
	wire  inWire
	bytes []byte // the buffers, in the endpoint's memory
	flags []atomic.Uint32

	turn  turn   // guards what follows
	end   bool   // the one with end of file was
	rest  []byte // of the message that Read is at
	read  Message
	going bool // Read is at a message

	next    atomic.Uint64 // messages received; changed with the turn
	freed   atomic.Uint64 // messages given back
	eof     atomic.Bool   // end of file has arrived, perhaps before others
	waiting waiting
	credits credits
}

// inWire is what the buffers are, and how the producer learns of free ones.
type inWire struct {
	buffers   uint64
	size      int
	pitch     uint64
	returns   returns
	credit    uint32 // the word, or the first of the words, that say so
	wordPitch uint32
}

// Message is a message in a buffer. Bytes are valid until it is released.
type Message struct {
	Bytes     []byte
	Opcode    uint8
	EOF       bool // the last one
	Truncated bool // the producer had more than the buffer holds
	turn      uint64
}

func newConsumer(l *Link, h *half, data []byte) *Consumer {
	c := &Consumer{
		link: l, bytes: data, flags: make([]atomic.Uint32, h.Buffers), turn: newTurn(),
		wire: inWire{buffers: uint64(h.Buffers), size: int(h.Size), pitch: uint64(h.Pitch)},
	}
	c.waiting.init()
	return c
}

// begin is called when it is known where the producer wants to hear of free
// buffers.
func (c *Consumer) begin(r returns, credit, pitch uint32) {
	c.wire.returns, c.wire.credit, c.wire.wordPitch = r, credit, pitch
	c.credits.begin(c)
}

// Buffers returns how many there are, and how long they are.
func (c *Consumer) Buffers() (n, size int) { return int(c.wire.buffers), c.wire.size }

// ready implements readier.
func (c *Consumer) ready() bool {
	k := c.next.Load()
	return c.flags[k%c.wire.buffers].Load() != 0 && k-c.freed.Load() < c.wire.buffers
}

// ended reports whether end of file has arrived.
func (c *Consumer) ended() bool { return c.eof.Load() }

// takeWord implements wordTaker: a buffer is full.
func (c *Consumer) takeWord(i int, value uint32) {
	f := Flag(value)
	switch {
	case !f.Full():
		return
	case i >= len(c.flags):
		c.link.fail(fmt.Errorf("a flag for buffer %d of %d: %w", i, len(c.flags), ErrProtocol))
		return
	case f.Length() > c.wire.size && !f.Truncated():
		c.link.fail(fmt.Errorf("a message of %d bytes in a buffer of %d: %w", f.Length(), c.wire.size, ErrProtocol))
		return
	}
	if f.EOF() {
		c.eof.Store(true)
	}
	if !c.flags[i].CompareAndSwap(0, value) {
		c.link.fail(fmt.Errorf("buffer %d was filled before it was given back: %w", i, ErrProtocol))
		return
	}
	c.waiting.rouse()
}

// released implements wordTaker.
func (c *Consumer) released() uint64 { return c.freed.Load() }

// Recv waits for the next message. What was delivered before the link failed is
// still received. After the message with end of file, and for one without bytes
// in its place, the error is io.EOF.
func (c *Consumer) Recv(ctx context.Context) (Message, error) {
	if err := c.turn.take(ctx); err != nil {
		return Message{}, err
	}
	defer c.turn.give()
	return c.recv(ctx)
}

func (c *Consumer) recv(ctx context.Context) (Message, error) {
	if c.end {
		return Message{}, io.EOF
	}
	if !c.ready() {
		if err := c.waiting.until(ctx, c.link, c.link.down, c); err != nil {
			return Message{}, err
		}
	}
	k := c.next.Load()
	i := k % c.wire.buffers
	f := Flag(c.flags[i].Load())
	m := Message{Opcode: f.Opcode(), EOF: f.EOF(), Truncated: f.Truncated(), turn: k}
	n := uint64(min(f.Length(), c.wire.size))
	m.Bytes = c.bytes[i*c.wire.pitch:][:n:n]
	c.next.Store(k + 1)
	if m.EOF {
		c.end = true
		if n == 0 && m.Opcode == 0 {
			return Message{}, io.EOF
		}
	}
	c.credits.due()
	return m, nil
}

// Release gives the buffer of a message back to the producer. Messages are
// released in the order in which they were received.
func (c *Consumer) Release(m Message) error {
	k := c.freed.Load()
	if m.turn != k || m.Bytes == nil {
		return c.link.wrap("receive from", ErrOutOfTurn)
	}
	c.flags[k%c.wire.buffers].Store(0)
	if !c.freed.CompareAndSwap(k, k+1) {
		return c.link.wrap("receive from", ErrOutOfTurn) // two at once
	}
	switch {
	case m.EOF: // the producer needs no more
	case c.wire.returns == returnsEach:
		c.credits.each(k)
	default:
		c.credits.due()
	}
	return nil
}

// Messages returns an iterator over all messages. Each is released when the loop
// goes on. It ends at end of file; an error is the last pair.
func (c *Consumer) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := c.Recv(ctx)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Message{}, err)
				return
			}
			more := yield(m, nil)
			if err := c.Release(m); err != nil || !more {
				if more {
					yield(Message{}, err)
				}
				return
			}
		}
	}
}

// credits tells the producer of free buffers.
type credits struct {
	c *Consumer

	mu   sync.Mutex
	busy bool   // counted: the word is under way
	told uint64 // counted: what it says
	word dgrdma.Transaction
	slot []creditSlot // each: of the buffers
}

// creditSlot is the word of one buffer.
type creditSlot struct {
	t     dgrdma.Transaction
	busy  bool
	again bool // given back once more before the last time was acknowledged
}

func (r *credits) begin(c *Consumer) {
	r.c = c
	if c.wire.returns == returnsEach {
		r.slot = make([]creditSlot, c.wire.buffers)
	}
}

// due tells the producer how many buffers came back, if that is worth it: a
// quarter of all, or fewer if the producer may have as few left.
func (r *credits) due() {
	if r.slot != nil {
		return
	}
	r.mu.Lock()
	post := r.countDue()
	r.mu.Unlock()
	if post {
		r.post(&r.word)
	}
}

// countDue prepares the word if it is time for it. Guarded by mu.
func (r *credits) countDue() bool {
	n := r.c.freed.Load()
	quarter := r.c.wire.buffers / 4
	if r.busy || n == r.told || n-r.told < quarter && r.c.next.Load()-r.told < r.c.wire.buffers-quarter {
		return false
	}
	r.busy, r.told = true, n
	r.word.CompletionAddr, r.word.CompletionValue = r.c.wire.credit, uint32(n)
	r.word.Done, r.word.Cookie = counted, r
	return true
}

// each tells the producer that the buffer of message k came back.
func (r *credits) each(k uint64) {
	s := &r.slot[k%r.c.wire.buffers]
	r.mu.Lock()
	if s.busy {
		s.again = true
		r.mu.Unlock()
		return
	}
	s.busy = true
	r.mu.Unlock()
	r.postEach(s, k)
}

func (r *credits) post(t *dgrdma.Transaction) {
	if err := r.c.link.post(t); err != nil {
		t.Done(t, err)
	}
}

// counted is called when the word is there.
func counted(t *dgrdma.Transaction, err error) {
	r := t.Cookie.(*credits)
	l := r.c.link
	if err != nil {
		l.fail(err)
	}
	r.mu.Lock()
	r.busy = false
	post := err == nil && r.countDue()
	r.mu.Unlock()
	if post {
		r.post(&r.word)
	}
	l.settled()
}

func (r *credits) postEach(s *creditSlot, k uint64) {
	s.t.CompletionAddr = r.c.wire.credit + uint32(k%r.c.wire.buffers)*r.c.wire.wordPitch
	s.t.CompletionValue = 1
	s.t.Done = func(_ *dgrdma.Transaction, err error) { r.given(s, k, err) }
	r.post(&s.t)
}

// given is called when a buffer's word is there.
func (r *credits) given(s *creditSlot, k uint64, err error) {
	l := r.c.link
	if err != nil {
		l.fail(err)
	}
	r.mu.Lock()
	again := s.again && err == nil
	s.busy, s.again = again, false
	r.mu.Unlock()
	if again {
		r.postEach(s, k)
	}
	l.settled()
}
