package endpoint

import (
	"context"
	"fmt"
)

// Post queues a transaction and returns at once. nil means that Done will be
// called; an error means that it will not, and that t was not touched:
// ErrQueueFull, ErrClosed, ErrBounds, ErrAlignment, ErrTooLarge,
// ErrNoCompletion, ErrInUse, or why the peer is down.
func (c *Conn) Post(t *Transaction) error { return c.post(t, t.done(), nil, anyLife) }

// PostWith is Post with done in place of t.Done, which it sets only if it
// returns nil.
func (c *Conn) PostWith(t *Transaction, done func(*Transaction, error)) error {
	return c.post(t, done, nil, anyLife)
}

// anyLife stands for whichever life the connection has.
const anyLife = 0

// Life returns a number that changes whenever everything posted so far is given
// up: because the peer restarted, or is down, or by Reset. It is never 0, but of a
// nil Conn.
func (c *Conn) Life() uint32 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lives
}

// PostTo is Post to that life of the connection and no other: what was meant for
// a peer that restarted since does not reach the new one. The error is then
// ErrPeerRestarted.
func (c *Conn) PostTo(life uint32, t *Transaction) error { return c.post(t, t.done(), nil, life) }

// nothing says what is nil, c or t.
func (c *Conn) nothing(t *Transaction) error {
	if c != nil {
		return fmt.Errorf("dgrdma: post to peer %d: no transaction: %w", c.peer.ID, ErrNil)
	}
	return ErrNil
}

func (c *Conn) post(t *Transaction, done func(*Transaction, error), waiter *writer, life uint32) error {
	if c == nil || t == nil {
		return c.nothing(t)
	}
	if err := c.validate(t); err != nil {
		return err
	}
	c.mu.Lock()
	switch {
	case t.owner != nil:
		c.mu.Unlock()
		return ErrInUse
	case c.err != nil:
		defer c.mu.Unlock()
		return c.err
	case life != anyLife && life != c.lives:
		defer c.mu.Unlock()
		return c.peerError("post to an earlier life", ErrPeerRestarted)
	case c.ep.draining.Load():
		c.mu.Unlock()
		return ErrClosed
	case c.posted.n >= c.ep.cfg.Queue:
		c.mu.Unlock()
		return ErrQueueFull
	}
	*t = Transaction{
		Segments: t.Segments, Completion: t.Completion,
		Fence: t.Fence, Done: done, Copied: t.Copied, Cookie: t.Cookie, owner: c, waiter: waiter,
	}
	c.posted.push(t)
	inline := c.posted.n == 1 && c.sender.InFlight() == 0 || c.ep.helpful && t.Bytes() >= inlineBytes
	if c.posted.n == 1 {
		now := c.ep.now()
		c.holding = now
		c.session.hurry(now)
	}
	// Only what is in flight will be heard of again: what was blocked may have
	// been withdrawn since.
	blocked := c.blocked && c.sender.InFlight() > 0
	if !blocked {
		c.queue()
	}
	c.mu.Unlock()
	if !blocked {
		c.ep.sched.Work(inline)
	}
	return nil
}

// inlineBytes makes a transaction that a helpful caller of Post sends itself: that
// takes longer than to wake another thread. Smaller ones wait for company.
const inlineBytes = 32 << 10

// Write posts a transaction and waits until it is done. With a context that is done
// it sends nothing. The context bounds the time it waits in the queue; once its first
// frame left, frames may be sent again from the caller's bytes, so Write returns when
// it is done: acknowledged, or failed because the peer is down, which takes GiveUp at
// most. Done must be nil.
func (c *Conn) Write(ctx context.Context, t *Transaction) error {
	if c == nil || t == nil {
		return c.nothing(t)
	}
	if t.Done != nil {
		panic("BUG: Write of a transaction with Done set")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w := t.waiter
	if w == nil {
		w = newWriter()
	}
	s := &c.ep.sched
	for waited := false; ; waited = true {
		err := c.post(t, nil, w, anyLife)
		if err == nil {
			if waited {
				c.roomLeft()
			}
			break
		}
		if err != ErrQueueFull {
			return err
		}
		s.Await(ctx, &w.Waiter, never, c.Done(), c.room)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if !s.Await(ctx, &w.Waiter, w.ready, nil, nil) {
		if ctx.Err() != nil && c.withdraw(t) {
			return context.Cause(ctx)
		}
		s.Await(context.Background(), &w.Waiter, w.ready, nil, nil)
	}
	return w.result()
}

// withdraw takes a transaction back of which nothing was sent.
func (c *Conn) withdraw(t *Transaction) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.begun || !c.isPosted(t) {
		return false
	}
	c.posted.remove(t)
	t.owner = nil
	c.roomMade()
	return true
}

// isPosted reports whether t is in the list, as opposed to on its way to Done.
// Guarded by mu.
func (c *Conn) isPosted(t *Transaction) bool { return t.prev != nil || c.posted.head == t }

// drain returns a channel that is closed when nothing is posted any more, or nil if
// nothing is.
func (c *Conn) drain() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.posted.n > 0 && c.drained == nil {
		c.drained = make(chan struct{})
	}
	return c.drained
}

// roomMade tells who waits for the queue. Guarded by mu.
func (c *Conn) roomMade() {
	select {
	case c.room <- struct{}{}:
	default:
	}
	if c.posted.n == 0 && c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
}

// roomLeft passes the token on: much may have become free with one.
func (c *Conn) roomLeft() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.posted.n < c.ep.cfg.Queue {
		c.roomMade()
	}
}
