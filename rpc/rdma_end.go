package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
)

// close ends the connection when what the machine has posted by then has gone. It does not take the turn itself, because callers
// hold locks that the goroutine with the turn needs.
func (c *rdmaConn) close(why error) {
	c.mu.Lock()
	first := c.cause == nil
	if first {
		c.cause = why
	}
	c.mu.Unlock()
	if first {
		c.add(rdmaEvent{kind: rdmaClose})
		go c.flush()
	}
}

func (c *rdmaConn) shutdown() {
	if errors.Is(c.reason(), errSilent) { // the peer takes nothing
		c.stop()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rdmaCloseTime)
	defer cancel()
	c.qp.Shutdown(ctx)
	c.stop()
}

// end tells the machine that the connection has ended. All that it holds comes back.
func (c *rdmaConn) end(now time.Time) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = c.qp.Err()
	}
	why := c.cause
	c.mu.Unlock()
	why = c.machine.Lost(why)
	c.mu.Lock()
	c.cause, c.over = why, true
	c.events, c.inbox = c.inbox, c.events[:0]
	c.mu.Unlock()
	c.hearAll(now) // so that all calls have returned
	c.drive(now)
	if c.timer != nil {
		c.timer.Stop()
	}
	for _, b := range c.posted[c.first:] {
		rdmaPool{}.Put(b)
	}
	c.posted, c.first = nil, 0
	if c.answers != nil {
		c.answers.ended()
	}
	close(c.done)
}

// reason returns why the connection has ended, or is to end.
func (c *rdmaConn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.cause, verbs.ErrPeerClosed) && !errors.Is(c.cause, rpcrdma.ErrFallBack) {
		return errPeerClosed
	}
	return c.cause
}

var errPeerClosed = errors.New("the peer has closed the connection")
