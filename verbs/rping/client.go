package rping

import (
	"context"
	"fmt"

	"github.com/dgrdma/dgrdma/verbs"
)

// Client is the side that pings. One goroutine at a time uses it.
type Client struct {
	talk
	unverified   bool
	source, sink buffer
}

// buffer is memory that the server gets at.
type buffer struct {
	bytes  []byte
	region *verbs.Region
	key    []byte // as the server is told
}

func newBuffer(d *verbs.Domain, size int, rights verbs.Rights) (buffer, error) {
	b := buffer{bytes: make([]byte, size)}
	var err error
	if b.region, err = d.Register(b.bytes, rights, nil); err == nil {
		b.key = b.region.Key().Bytes()
	}
	return b, err
}

func (b *buffer) close() {
	if b.region != nil {
		b.region.Invalidate()
	}
}

// Dial connects to a server at an address as [verbs.Host.Dial] has it, for pings of size bytes.
func Dial(ctx context.Context, h *verbs.Host, address string, size int, o *Options) (*Client, error) {
	if o == nil {
		o = &Options{}
	}
	if size < MinSize || size > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes; they have %d to %d", ErrSize, size, MinSize, MaxSize)
	}
	d := h.NewDomain()
	c := &Client{unverified: o.Unverified}
	c.wait = o.Wait
	var err error
	if c.source, err = newBuffer(d, size, verbs.RemoteRead); err == nil {
		c.sink, err = newBuffer(d, size, verbs.RemoteWrite)
	}
	if err == nil {
		c.q, err = h.Dial(ctx, address, c.options(o, d))
	}
	if err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// Ping sends data there and back, and returns what came back, which is good until the next one.
func (c *Client) Ping(ctx context.Context) ([]byte, error) {
	clear(c.sink.bytes)
	Fill(c.source.bytes, c.n)
	if err := c.tell(ctx, &c.source); err != nil {
		return nil, c.wrong("until the server has read it", err)
	}
	if err := c.tell(ctx, &c.sink); err != nil {
		return nil, c.wrong("until the server has written it back", err)
	}
	if !c.unverified {
		if err := compare(c.n, c.sink.bytes, c.source.bytes); err != nil {
			return nil, err
		}
	}
	c.n++
	return c.sink.bytes, nil
}

// tell tells the server of a buffer, and waits for its go-ahead.
func (c *Client) tell(ctx context.Context, b *buffer) error {
	ctx, stop := c.within(ctx)
	defer stop()
	err := c.q.Send(ctx, b.key)
	if err == nil {
		_, err = c.hear(ctx)
	}
	return because(ctx, err)
}

// Close says good-bye to the server, and waits until it has closed the connection as well.
func (c *Client) Close(ctx context.Context) error {
	err := c.q.Shutdown(ctx)
	c.release()
	return end(err)
}

// Abort ends the connection at once.
func (c *Client) Abort() {
	c.q.Abort()
	c.release()
}

func (c *Client) release() {
	c.source.close()
	c.sink.close()
}
