package link

import (
	"context"
	"io"
)

var (
	_ io.WriteCloser = (*Producer)(nil)
	_ io.ReaderFrom  = (*Producer)(nil)
	_ io.Reader      = (*Consumer)(nil)
	_ io.WriterTo    = (*Consumer)(nil)
)

// Write sends b as one message, or as many as it needs, and returns when it has
// been copied.
func (p *Producer) Write(b []byte) (n int, err error) {
	return p.WriteContext(context.Background(), b)
}

// WriteContext is Write that waits no longer than the context: n bytes were sent, and the
// error is the context's cause.
func (p *Producer) WriteContext(ctx context.Context, b []byte) (n int, err error) {
	if p == nil {
		return 0, ErrNoHalf
	}
	if err := p.turn.take(ctx); err != nil {
		return 0, err
	}
	defer p.turn.give()
	for n < len(b) {
		part := b[n:min(n+p.wire.size, len(b))]
		if err := p.copy(ctx, PackFlag(len(part), p.opcode, false), part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// leastRead is what ReadFrom asks its reader for at first. Arbitrary, like that of bufio.
const leastRead = 4 << 10

// ReadFrom implements [io.ReaderFrom]: r reads straight into buffers, and what
// each of its reads brings is a message. It is asked for 4 KiB at first, and then for twice
// as much as it read the time before: so a reader that waits holds little memory.
func (p *Producer) ReadFrom(r io.Reader) (n int64, err error) {
	ctx := context.Background()
	for size := leastRead; ; {
		b, err := p.acquireSome(ctx, size)
		if err != nil {
			return n, err
		}
		got, err := r.Read(b.Bytes)
		size = max(leastRead, 2*got)
		if got > 0 {
			n += int64(got)
			if err := p.Commit(b, p.opcode, got); err != nil {
				return n, err
			}
		} else {
			p.abandon(b)
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// abandon gives a buffer back that was the last to be acquired.
func (p *Producer) abandon(b Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acquired.Load() == b.turn+1 {
		p.acquired.Store(b.turn)
		s := p.ring.at(b.turn)
		p.giveBack(s)
		s.busy.Store(false)
		p.checkIdle()
	}
}

// acquireSome is Acquire of as many bytes, if a message can have them.
func (p *Producer) acquireSome(ctx context.Context, size int) (Buffer, error) {
	if p == nil {
		return Buffer{}, ErrNoHalf
	}
	if err := p.turn.take(ctx); err != nil {
		return Buffer{}, err
	}
	defer p.turn.give()
	return p.acquire(ctx, min(size, p.wire.size))
}

// Read implements [io.Reader] over the messages' bytes; opcodes are not seen.
func (c *Consumer) Read(b []byte) (n int, err error) {
	return c.ReadContext(context.Background(), b)
}

// ReadContext is Read that waits no longer than the context; what is there wins.
func (c *Consumer) ReadContext(ctx context.Context, b []byte) (n int, err error) {
	if c == nil {
		return 0, ErrNoHalf
	}
	if err := c.turn.take(ctx); err != nil {
		return 0, err
	}
	defer c.turn.give()
	if len(b) == 0 {
		return 0, nil
	}
	if err := c.proceed(ctx); err != nil {
		return 0, err
	}
	defer c.link.letGo()
	if !c.link.hold() {
		return 0, c.link.Err()
	}
	n = copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		err = c.finish()
	}
	return n, err
}

// proceed sees to it that there are bytes to be read. Guarded by turn.
func (c *Consumer) proceed(ctx context.Context) (err error) {
	for !c.going {
		if c.read, err = c.recv(ctx); err != nil {
			return err
		}
		c.rest, c.going = c.read.Bytes, true
		if len(c.rest) == 0 {
			if err := c.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish gives back the message that Read is at.
func (c *Consumer) finish() error {
	m := c.read
	c.going, c.rest, c.read = false, nil, Message{}
	return c.Release(m)
}

// WriteTo implements [io.WriterTo]: w gets every message as it lies in the
// buffer. It ends at end of file. What w did not take is there for the next.
func (c *Consumer) WriteTo(w io.Writer) (n int64, err error) {
	return c.WriteToContext(context.Background(), w)
}

// WriteToContext is WriteTo that waits for the peer no longer than the context.
func (c *Consumer) WriteToContext(ctx context.Context, w io.Writer) (n int64, err error) {
	if c == nil {
		return 0, ErrNoHalf
	}
	if err := c.turn.take(ctx); err != nil {
		return 0, err
	}
	defer c.turn.give()
	for {
		if err := c.proceed(ctx); err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		k, err := c.writeTo(w)
		n += int64(k)
		if c.rest = c.rest[k:]; len(c.rest) == 0 {
			if err := c.finish(); err != nil {
				return n, err
			}
		}
		if err != nil {
			return n, err
		}
	}
}

// writeTo writes what is left of a message. The memory stays the link's meanwhile,
// even if it is closed.
func (c *Consumer) writeTo(w io.Writer) (n int, err error) {
	defer c.link.letGo()
	if !c.link.hold() {
		return 0, c.link.Err()
	}
	return w.Write(c.rest)
}
