package rpc

import "fmt"

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

// ended is the error of a call that was not sent.
func (c *Client) ended(why error) error { return fmt.Errorf("%w (%w): %s", ErrEnded, why, c.remedy) }

// failAll ends all calls. c.mu is held.
func (c *Client) failAll(err error) {
	for xid, call := range c.calls {
		delete(c.calls, xid)
		call.complete(record{}, nil, err)
	}
}
