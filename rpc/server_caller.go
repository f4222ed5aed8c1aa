package rpc

import "encoding/binary"

// connCaller is the half of a server's connection over a stream that calls the client.
type connCaller struct {
	*serverConn
	wake chan struct{} // has one when something is queued
}

// newCaller makes the half.
func (c *serverConn) newCaller(*Client) carrier {
	return &connCaller{serverConn: c, wake: make(chan struct{}, 1)}
}

func (c *connCaller) begin() { go c.write() }

func (c *connCaller) submit(call *clientCall) { c.sender.put(&call.out) }

// flush has the goroutine that writes wake up. Callers do not write: their contexts may end.
func (c *connCaller) flush(*clientCall) {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what is queued until the connection ends.
func (c *connCaller) write() {
	for {
		select {
		case <-c.wake:
			c.sender.flush()
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *connCaller) withdraw(call *clientCall) bool { return c.sender.withdraw(&call.out) }

func (c *connCaller) received() uint64 { return c.reads.Load() }

// close leaves the connection: it is the client's.
func (c *connCaller) close(error) {}

// replied takes a record that is a reply to a call of a handler. It reports whether it is one.
func (c *serverConn) replied(rec record) bool {
	if c.server.opts.Callbacks <= 0 || !rec.is(kindReply) {
		return false
	}
	if of := c.callbacks.made(); of != nil {
		of.replied(binary.BigEndian.Uint32(rec.b), rec, nil)
		return true
	}
	return false
}

// readReplies reads replies while the server shuts down, and until the connection ends. Calls are dropped: the client makes them again
// over another connection.
func (c *serverConn) readReplies(r *records) {
	err := c.readReply(r)
	for err == nil {
		err = c.readReply(r)
	}
	c.close(err)
	c.sender.end(err)
	c.callbacks.end(c.reason())
}

// readReply reads once.
func (c *serverConn) readReply(r *records) error {
	n, err := c.nc.Read(r.space())
	r.received(n)
	for {
		rec, ok, err := r.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if !c.replied(rec) {
			rec.mem.release()
		}
	}
	return err
}
