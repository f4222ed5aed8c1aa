package link

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
)

// Consumer is the half of a link that receives. Its methods may be called from
// any goroutine; each message is received once.
type Consumer struct {
	link  *Link
	wire  inWire
	bytes []byte // the buffers, in the endpoint's memory
	words words  // where the producer writes flags
	flags []atomic.Uint32

	filling []filling // of each buffer; nil for peers of other kinds; of the goroutine that receives

	turn  turn   // guards what follows, unless there is a handler
	rest  []byte // of the message that Read is at
	read  Message
	going bool // Read is at a message

	came    atomic.Uint64 // messages that are or were in buffers
	next    atomic.Uint64 // messages received; changed with the turn, or by who calls the handler
	end     atomic.Bool   // the last one was
	freed   atomic.Uint64 // messages given back
	eof     atomic.Bool   // end of file has arrived, perhaps before others
	waiting waiting
	handle  func(*Link, Message) // not nil: called by who receives
	credits credits
}

// inWire is what the buffers are.
type inWire struct {
	buffers uint64
	size    int
	pitch   uint64
}

// Message is a message in a buffer. Bytes are valid until it is released.
type Message struct {
	Number    uint64 // counts from 0
	Bytes     []byte
	Opcode    uint8
	EOF       bool // the last one
	Truncated bool // the producer had more than the buffer holds
}

func newConsumer(l *Link, h *half, data []byte) *Consumer {
	c := &Consumer{
		link: l, bytes: data, flags: make([]atomic.Uint32, h.Buffers),
		wire:  inWire{buffers: uint64(h.Buffers), size: int(h.Size), pitch: uint64(h.Pitch)},
		words: wordsAt(h.Flags, h.Buffers, h.FlagPitch),
	}
	if !l.plain {
		c.filling = make([]filling, h.Buffers)
	}
	c.waiting.init(l.host)
	c.turn.init()
	c.credits.c = c
	return c
}

// Buffers returns how many there are, and how long they are.
func (c *Consumer) Buffers() (n, size int) {
	if c == nil {
		return 0, 0
	}
	return int(c.wire.buffers), c.wire.size
}

// ready implements readier.
func (c *Consumer) ready() bool {
	k := c.next.Load()
	return c.flags[k%c.wire.buffers].Load() != 0 && k-c.freed.Load() < c.wire.buffers
}

// handled waits for the end of what a handler gets.
type handled Consumer

func (h *handled) ready() bool { return h.end.Load() }

// ended reports whether everything up to end of file has arrived.
func (c *Consumer) ended() bool {
	for k := c.next.Load(); ; k++ {
		switch f := Flag(c.flags[k%c.wire.buffers].Load()); {
		case c.end.Load():
			return true
		case k < c.next.Load(): // received meanwhile
		case f == 0 || k >= c.freed.Load()+c.wire.buffers:
			return false
		case f.EOF():
			return true
		}
	}
}

// takeWord takes a flag: buffer i is full.
func (c *Consumer) takeWord(i int, value uint32) {
	f := Flag(value)
	if !f.Full() && c.filling == nil {
		return
	}
	n := min(f.Length(), c.wire.size)
	if f.Length() > c.wire.size && !f.Truncated() {
		c.link.fail(fmt.Errorf("a message of %d bytes in a buffer of %d: %w", f.Length(), c.wire.size, ErrProtocol))
		return
	}
	if c.filling != nil {
		whole := c.filling[i].exactly(uint32(n))
		c.filling[i] = filling{}
		if !whole || !f.Full() {
			c.link.fail(fmt.Errorf("buffer %d was declared full with %d bytes, and others came: %w", i, n, ErrProtocol))
			return
		}
	}
	if f.EOF() {
		c.eof.Store(true)
	}
	if !c.flags[i].CompareAndSwap(0, value) {
		c.link.fail(fmt.Errorf("buffer %d was filled before it was given back: %w", i, ErrProtocol))
		return
	}
	c.came.Add(1)
	if c.handle == nil {
		c.credits.arrived()
	} else if c.serve(); !c.end.Load() {
		return
	}
	c.waiting.Rouse()
}

// serve calls the handler for the messages that are there. It runs on the
// goroutine that receives.
func (c *Consumer) serve() {
	for !c.end.Load() && c.ready() {
		m := c.get()
		c.handle(c.link, m)
		c.Release(m)
	}
}

// Recv waits for the next message. What was delivered before the link failed is
// still received, and what is there wins over a context that is done. At end of
// file, behind a message with EOF set or in place of an empty one, the error is io.EOF.
//
// With Options.Handle there is nothing to receive but the end.
func (c *Consumer) Recv(ctx context.Context) (Message, error) {
	if c == nil {
		return Message{}, ErrNoHalf
	}
	if err := c.turn.take(ctx); err != nil {
		return Message{}, err
	}
	defer c.turn.give()
	return c.recv(ctx)
}

func (c *Consumer) recv(ctx context.Context) (Message, error) {
	if c.link.ending.Load() {
		return Message{}, c.link.Err() // the memory may be another link's
	}
	if c.handle != nil {
		err := c.waiting.until(ctx, c.link, c.link.down, (*handled)(c))
		if err == nil {
			err = io.EOF
		}
		return Message{}, err
	}
	if c.end.Load() {
		return Message{}, io.EOF
	}
	if err := c.waiting.until(ctx, c.link, c.link.down, c); err != nil {
		return Message{}, err
	}
	m := c.get()
	if m.EOF && len(m.Bytes) == 0 && m.Opcode == 0 {
		return Message{}, io.EOF
	}
	c.credits.received()
	return m, nil
}

// get takes the next message, which is there.
func (c *Consumer) get() Message {
	k := c.next.Load()
	i := k % c.wire.buffers
	f := Flag(c.flags[i].Load())
	m := Message{Opcode: f.Opcode(), EOF: f.EOF(), Truncated: f.Truncated(), Number: k}
	n := uint64(min(f.Length(), c.wire.size))
	m.Bytes = c.bytes[i*c.wire.pitch:][:n:n]
	if m.EOF {
		c.end.Store(true) // before it counts as received: see ended
	}
	c.next.Store(k + 1)
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
	flag := &c.flags[k%c.wire.buffers]
	n := min(Flag(flag.Load()).Length(), c.wire.size)
	flag.Store(0)
	if !c.freed.CompareAndSwap(k, k+1) {
		return c.link.wrap("receive from", ErrOutOfTurn) // two at once
	}
	c.credits.back(k, uint64(n), m.EOF)
	return nil
}

// Messages returns an iterator over all messages. Each is released when the loop
// goes on. It ends at end of file; an error is the last pair. A message is valid until the loop
// goes on, also if the link is closed before.
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
			more, err := c.show(m, yield)
			if err != nil && more {
				yield(Message{}, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// show gives a message to a loop and releases it. The memory stays the link's for as long, even
// if it is closed.
func (c *Consumer) show(m Message, yield func(Message, error) bool) (more bool, err error) {
	defer c.link.letGo()
	if !c.link.hold() {
		return true, c.link.Err()
	}
	more = yield(m, nil)
	return more, c.Release(m)
}
