package netconn

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/link"
)

var (
	_ net.Conn    = (*Conn)(nil)
	_ io.WriterTo = (*Conn)(nil)
)

// Conn is a connection: a link in both directions.
type Conn struct {
	link          *link.Link
	local, remote Addr
	read, write   deadline
	closed        atomic.Bool // Close was called
	ended         atomic.Bool // CloseWrite was called
}

func newConn(l *link.Link, local, remote Addr) *Conn {
	c := &Conn{link: l, local: local, remote: remote}
	c.read.init()
	c.write.init()
	return c
}

// Link returns the link that carries the connection. Its buffers are the connection's.
func (c *Conn) Link() *link.Link { return c.link }

// Read implements [net.Conn]. At the peer's end of file the error is io.EOF itself.
func (c *Conn) Read(b []byte) (n int, err error) {
	ctx, err := c.begin(&c.read)
	if err == nil && len(b) > 0 {
		n, err = c.link.In.ReadContext(ctx, b)
	}
	return n, c.failed("read", err)
}

// WriteTo implements [io.WriterTo]: w gets what comes as it lies in the host's memory.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	ctx, err := c.begin(&c.read)
	if err != nil {
		return 0, c.failed("read", err)
	}
	n, err = c.link.In.WriteToContext(ctx, w)
	if _, ours := err.(*link.Error); ours || err == ctx.Err() {
		err = c.failed("read", err)
	}
	return n, err // an error of w, as it is
}

// Write implements [net.Conn]. It returns when b was copied.
func (c *Conn) Write(b []byte) (n int, err error) {
	ctx, err := c.begin(&c.write)
	if err == nil && c.ended.Load() {
		err = link.ErrClosed
	}
	if err == nil {
		n, err = c.link.Out.WriteContext(ctx, b)
	}
	return n, c.failed("write", err)
}

// begin returns the context of a call, or an error if the call may not begin.
func (c *Conn) begin(d *deadline) (context.Context, error) {
	ctx := d.term.Load()
	if c.closed.Load() {
		return ctx, net.ErrClosed
	}
	return ctx, ctx.Err()
}

// Close implements [net.Conn]. It does not wait: what was written arrives, and end of file after it.
// Calls that wait in Read or Write get net.ErrClosed. It may be called again.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	for _, d := range []*deadline{&c.read, &c.write} {
		d.mu.Lock()
		d.stop()
		d.mu.Unlock()
	}
	c.link.Finish()
	return nil
}

// CloseWrite ends what this side writes, and does not wait: the peer reads what was written before,
// and io.EOF. What the peer sends can still be read.
func (c *Conn) CloseWrite() error {
	if c.closed.Load() {
		return c.failed("close", net.ErrClosed)
	}
	c.ended.Store(true)
	c.link.Out.Finish()
	return nil
}

// LocalAddr implements [net.Conn].
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error { return c.set(t, &c.read, &c.write) }

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(t, &c.read) }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(t, &c.write) }

func (c *Conn) set(t time.Time, of ...*deadline) error {
	if c.closed.Load() {
		return c.failed("set", net.ErrClosed)
	}
	for _, d := range of {
		d.set(t)
	}
	return nil
}
