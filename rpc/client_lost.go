package rpc

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// lost is told that the connection is at its end, and does not touch any message any more.
func (c *Client) lost(of carrier, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.carrier != of {
		return
	}
	c.carrier, c.reason = nil, why
	if c.ctx.Err() != nil {
		c.failAll(ErrClosed)
		return
	}
	if len(c.calls) > 0 && c.isForeign(why) {
		if !errors.Is(why, ErrNotRPC) {
			why = fmt.Errorf("%w (%w)", ErrNotRPC, why)
		}
		c.counters.lost.Add(uint64(len(c.calls)))
		c.failAll(why)
		return
	}
	for xid, call := range c.calls {
		switch sent := call.out.state == writing || call.out.state == written; {
		case sent && (c.dial == nil || !call.repeatable(&c.opts)):
			c.counters.lost.Add(1)
			delete(c.calls, xid)
			call.complete(record{}, nil, fmt.Errorf("%w (%w)", ErrLost, why))
		case c.dial == nil:
			delete(c.calls, xid)
			call.complete(record{}, nil, c.ended(why))
		case sent:
			c.counters.resent.Add(1)
		}
	}
	if len(c.calls) > 0 && !c.giveUp(why) {
		c.connect()
	}
}

// isForeign reports whether the end of a connection shows that the server speaks another protocol: no server that has ever replied does.
// One connection that was closed without a reply may be that of a server that ends. Two are not. c.mu is held.
func (c *Client) isForeign(why error) bool {
	switch {
	case c.hasReplied:
		return false
	case errors.Is(why, ErrNotRPC):
		return true
	case c.dial == nil || c.rdma != nil:
		return false
	case errors.Is(why, io.EOF), errors.Is(why, syscall.ECONNRESET), errors.Is(why, syscall.EPIPE):
		c.unreplied++
	}
	return c.unreplied >= 2
}

// ended is the error of a call that was not sent.
func (c *Client) ended(why error) error { return fmt.Errorf("%w (%w): %s", ErrEnded, why, c.remedy) }

// failAll ends all calls. c.mu is held.
func (c *Client) failAll(err error) {
	for xid, call := range c.calls {
		delete(c.calls, xid)
		call.complete(record{}, nil, err)
	}
}
