package link

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Consumer is the half of a link that receives. Its methods may be called from any goroutine. Each
// message is received once.
type Consumer struct {
	link   *Link
	size   int     // of a buffer
	first  *inRing // the buffers that it began with
	rings  atomic.Pointer[inRings]
	growth growth

	token     token  // guards what follows, unless there is a handler
	rest      []byte // of the message that Read is at
	read      Message
	isReading bool // Read is at a message

	progress
	endReceived atomic.Bool // the last message was received
	endArrived  atomic.Bool // end of file has arrived, perhaps before other messages
	waiting     waiting
	handle      func(*Link, Message) // not nil: called on the receive goroutine
	credits     credits
}

func newConsumer(l *Link, h *half, data []byte) *Consumer {
	c := &Consumer{link: l, size: int(h.Size), first: newInRing(h, data, !l.plain)}
	c.rings.Store(&inRings{before: c.first, now: c.first})
	c.waiting.init(l.host)
	c.token.init()
	c.credits.link, c.credits.progress = l, &c.progress
	c.credits.buffers.Store(c.first.buffers)
	return c
}

// Buffers returns how many buffers there are, and how long they are.
func (c *Consumer) Buffers() (n, size int) {
	if c == nil {
		return 0, 0
	}
	return int(c.rings.Load().now.buffers), c.size
}

// isReady implements condition.
func (c *Consumer) isReady() bool {
	k := c.received.Load()
	r := c.ringOf(k)
	return r.flag(k).Load() != 0 && k-c.freed.Load() < r.buffers
}

// handlerDone is the condition that the handler got the last message.
type handlerDone Consumer

func (h *handlerDone) isReady() bool { return h.endReceived.Load() }

// hasAll reports whether everything up to end of file has arrived.
func (c *Consumer) hasAll() bool {
	for k := c.received.Load(); ; k++ {
		r := c.ringOf(k)
		switch f := Flag(r.flag(k).Load()); {
		case c.endReceived.Load():
			return true
		case k < c.received.Load(): // another goroutine received it
		case f == 0 || k >= c.freed.Load()+r.buffers:
			return false
		case f.EOF():
			return true
		}
	}
}

// takeWord takes a flag: buffer i of a ring is full.
func (c *Consumer) takeWord(r *inRing, i int, value uint32) {
	f := Flag(value)
	if !f.Full() && r.partial == nil {
		return
	}
	n := min(f.Length(), c.size)
	if f.Length() > c.size && !f.Truncated() {
		c.link.fail(fmt.Errorf("a message of %d bytes in a buffer of %d: %w", f.Length(), c.size, ErrProtocol))
		return
	}
	if r.partial != nil {
		whole := r.partial[i].isExactly(uint32(n))
		r.partial[i] = partial{}
		if !whole || !f.Full() {
			c.link.fail(fmt.Errorf("buffer %d was declared full with %d bytes, and others came: %w", i, n, ErrProtocol))
			return
		}
	}
	if f.EOF() {
		c.endArrived.Store(true)
	}
	if !r.flags[i].CompareAndSwap(0, value) {
		c.link.fail(fmt.Errorf("buffer %d was filled before it was given back: %w", i, ErrProtocol))
		return
	}
	c.arrived.Add(1)
	if c.handle == nil {
		c.credits.messageArrived()
	} else if c.callHandler(); !c.endReceived.Load() {
		return
	}
	c.waiting.Rouse()
}

// callHandler calls the handler for the messages that are there. It runs on the receive goroutine.
func (c *Consumer) callHandler() {
	for !c.endReceived.Load() && c.isReady() {
		m := c.get()
		c.handle(c.link, m)
		c.Release(m)
	}
}

// Recv waits for the next message. What was delivered before the link failed is still received. What
// is there wins over a context that is done. At end of file the error is io.EOF: after a message with
// EOF set, or in place of an empty one.
//
// With Options.Handle there is nothing to receive but the end.
func (c *Consumer) Recv(ctx context.Context) (Message, error) {
	if c == nil {
		return Message{}, ErrNoHalf
	}
	if err := c.token.take(ctx); err != nil {
		return Message{}, err
	}
	defer c.token.give()
	return c.recv(ctx)
}

func (c *Consumer) recv(ctx context.Context) (Message, error) {
	if c.link.closed.Load() {
		return Message{}, c.link.Err() // the memory may be another link's
	}
	if c.handle != nil {
		err := c.waiting.until(ctx, c.link, c.link.down, (*handlerDone)(c))
		if err == nil {
			err = io.EOF
		}
		return Message{}, err
	}
	if c.endReceived.Load() {
		return Message{}, io.EOF
	}
	if err := c.waiting.until(ctx, c.link, c.link.down, c); err != nil {
		return Message{}, err
	}
	m := c.get()
	if m.EOF && len(m.Bytes) == 0 && m.Opcode == 0 {
		return Message{}, io.EOF
	}
	c.credits.messageReceived()
	return m, nil
}

// get takes the next message, which is there.
func (c *Consumer) get() Message {
	k := c.received.Load()
	r := c.ringOf(k)
	f := Flag(r.flag(k).Load())
	m := Message{Opcode: f.Opcode(), EOF: f.EOF(), Truncated: f.Truncated(), Number: k}
	n := min(f.Length(), c.size)
	m.Bytes = r.bytes[k%r.buffers*r.pitch:][:n:n]
	if m.EOF {
		c.endReceived.Store(true) // before it counts as received: see hasAll
	}
	c.received.Store(k + 1)
	return m
}

// Release gives the buffer of a message back to the producer. Messages are
// released in the order in which they were received.
func (c *Consumer) Release(m Message) error {
	if c == nil {
		return ErrNoHalf
	}
	k := c.freed.Load()
	if m.Number != k || m.Bytes == nil {
		return c.link.wrap("receive from", ErrOutOfTurn)
	}
	flag := c.ringOf(k).flag(k)
	n := min(Flag(flag.Load()).Length(), c.size)
	flag.Store(0)
	if !c.freed.CompareAndSwap(k, k+1) {
		return c.link.wrap("receive from", ErrOutOfTurn) // two goroutines released it
	}
	c.leaveRing(k + 1)
	c.credits.released(k, uint64(n), m.EOF)
	return nil
}

// Messages returns an iterator over all messages. Each is released when the loop goes on, and is valid
// until then, also if the link is closed before. The iterator ends at end of file. An error is its
// last pair.
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
			more, err := c.yieldMessage(m, yield)
			if err != nil && more {
				yield(Message{}, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// yieldMessage gives a message to a loop and releases it. The memory stays the link's in that time,
// also if the link is closed.
func (c *Consumer) yieldMessage(m Message, yield func(Message, error) bool) (more bool, err error) {
	defer c.link.releaseMemory()
	if !c.link.holdMemory() {
		return true, c.link.Err()
	}
	more = yield(m, nil)
	return more, c.Release(m)
}

// checkFill checks a message of the transaction that fills buffer i of a ring, and returns where its bytes go.
// Between two times that the application gives a buffer back, one transaction fills it, and fills that
// buffer only. So what the application was handed out does not change.
func (c *Consumer) checkFill(r *inRing, i int, m *dgrdma.Message) ([]byte, error) {
	f := &r.partial[i]
	n, off := uint64(m.Len), uint64(m.Addr)-r.at-uint64(i)*r.pitch
	var bad string
	switch {
	case r.flags[i].Load() != 0:
		bad = "was filled before it was given back"
	case f.begun && f.txn != m.Txn:
		bad = "is filled by two transactions"
	case n > 0 && m.Count == 0:
		bad = "gets data that its transaction does not count"
	case n > 0 && (off > uint64(c.size) || off+n > uint64(c.size)):
		bad = fmt.Sprintf("completes with data that is not in it, at %#x", m.Addr)
	default:
		f.begun, f.txn = true, m.Txn
		if n == 0 {
			return nil, nil
		}
		return r.bytes[uint64(i)*r.pitch+off:][:n:n], nil
	}
	c.link.fail(fmt.Errorf("buffer %d %s: %w", i, bad, ErrProtocol))
	return nil, errNotGranted
}

// addPartial notes data that checkFill has allowed.
func (c *Consumer) addPartial(m *dgrdma.Message) {
	r, i := c.flagAt(uint64(m.CompletionAddr))
	off := m.Addr - uint32(r.at) - uint32(i)*uint32(r.pitch)
	r.partial[i].add(off, off+uint32(m.Len))
}
