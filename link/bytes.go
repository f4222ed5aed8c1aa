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

// WriteContext is Write that waits no longer than the context: n bytes were sent, and the error is the
// context's cause.
func (p *Producer) WriteContext(ctx context.Context, b []byte) (n int, err error) {
	if p == nil {
		return 0, ErrNoHalf
	}
	if err := p.token.take(ctx); err != nil {
		return 0, err
	}
	defer p.token.give()
	for n < len(b) {
		part := b[n:min(n+p.layout.size, len(b))]
		if err := p.sendCopy(ctx, PackFlag(len(part), p.opcode, false), part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// leastRead is how many bytes ReadFrom asks its reader for at first. Arbitrary, like that of bufio.
const leastRead = 4 << 10

// ReadFrom implements [io.ReaderFrom]: r reads straight into buffers, and what each of its reads
// brings is a message. It is asked for 4 KiB at first, and then for twice as much as it read the time
// before. So a reader that waits holds little memory.
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
			p.cancelLast(b)
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// cancelLast gives a buffer back that was the last to be acquired.
func (p *Producer) cancelLast(b Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acquired.Load() == b.number+1 {
		p.acquired.Store(b.number)
		s := p.ring.at(b.number)
		p.freeChunk(s)
		s.busy.Store(false)
		p.checkIdle()
	}
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
	if err := c.token.take(ctx); err != nil {
		return 0, err
	}
	defer c.token.give()
	if len(b) == 0 {
		return 0, nil
	}
	if err := c.nextBytes(ctx); err != nil {
		return 0, err
	}
	defer c.link.releaseMemory()
	if !c.link.holdMemory() {
		return 0, c.link.Err()
	}
	n = copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		err = c.releaseRead()
	}
	return n, err
}

// nextBytes waits until there are bytes to be read. Guarded by token.
func (c *Consumer) nextBytes(ctx context.Context) (err error) {
	for !c.isReading {
		if c.read, err = c.recv(ctx); err != nil {
			return err
		}
		c.rest, c.isReading = c.read.Bytes, true
		if len(c.rest) == 0 {
			if err := c.releaseRead(); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseRead gives back the message that Read is at.
func (c *Consumer) releaseRead() error {
	m := c.read
	c.isReading, c.rest, c.read = false, nil, Message{}
	return c.Release(m)
}

// WriteTo implements [io.WriterTo]: w gets every message as it lies in the buffer. It ends at end of
// file. What w did not take is there for the next call.
func (c *Consumer) WriteTo(w io.Writer) (n int64, err error) {
	return c.WriteToContext(context.Background(), w)
}

// WriteToContext is WriteTo that waits for the peer no longer than the context.
func (c *Consumer) WriteToContext(ctx context.Context, w io.Writer) (n int64, err error) {
	if c == nil {
		return 0, ErrNoHalf
	}
	if err := c.token.take(ctx); err != nil {
		return 0, err
	}
	defer c.token.give()
	for {
		if err := c.nextBytes(ctx); err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		k, err := c.writeTo(w)
		n += int64(k)
		if c.rest = c.rest[k:]; len(c.rest) == 0 {
			if err := c.releaseRead(); err != nil {
				return n, err
			}
		}
		if err != nil {
			return n, err
		}
	}
}

// writeTo writes the rest of a message. The memory stays the link's in that time, also if the link is
// closed.
func (c *Consumer) writeTo(w io.Writer) (n int, err error) {
	defer c.link.releaseMemory()
	if !c.link.holdMemory() {
		return 0, c.link.Err()
	}
	return w.Write(c.rest)
}
