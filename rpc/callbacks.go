package rpc

import (
	"net"
	"sync"
	"time"
)

// callbacks is the client of a server's connection, which is made when a handler asks for it first: the reverse direction.
type callbacks struct {
	mu      sync.Mutex
	client  *Client
	carrier carrier
	why     error // the connection has ended
}

// of returns the client, or nil if the server makes no calls. with makes its carrier.
func (b *callbacks) of(s *Server, address net.Addr, with func(*Client) carrier) *Client {
	if s.opts.Callbacks <= 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client != nil {
		return b.client
	}
	// A client that does not answer keeps its connection: it cannot be made again from here (RPC2-078).
	c := newClient(address.String(), &ClientOptions{Credits: s.opts.Callbacks, MaxReply: s.opts.MaxCall, Timeout: -1})
	c.counters, c.remedy = &s.calls, "wait for another call of the client"
	c.counters.connections.Add(1)
	b.client, b.carrier = c, with(c)
	c.carrier = b.carrier
	if b.why != nil {
		c.lost(b.carrier, b.why)
	} else {
		b.carrier.begin()
	}
	return c
}

// made returns the client if it was made.
func (b *callbacks) made() *Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.client
}

// out returns how many calls have no reply.
func (b *callbacks) out() int {
	if c := b.made(); c != nil {
		return len(c.credits)
	}
	return 0
}

// end is told that the connection has ended, and touches no message of the client.
func (b *callbacks) end(why error) {
	b.mu.Lock()
	b.why = why
	c, of := b.client, b.carrier
	b.mu.Unlock()
	if c != nil {
		c.lost(of, why)
	}
}

// behindTime is how long replies to calls of handlers are not read because the client has more calls than there are places. It is
// arbitrary: handlers may wait for each other's places that long.
const behindTime = 5 * time.Second

// fail ends the calls of handlers, while the connection goes on.
func (b *callbacks) fail(err error) {
	if c := b.made(); c != nil {
		c.mu.Lock()
		c.failAll(err)
		c.mu.Unlock()
	}
}
