package dgrdma

import (
	"context"
	"fmt"

	"github.com/dgrdma/dgrdma/ack"
)

// Post queues a transaction and returns at once. nil means that Done will be
// called; an error means that it will not, and that t was not touched:
// ErrQueueFull, ErrClosed, ErrBounds, ErrAlignment, ErrTooLarge,
// ErrNoCompletion, ErrInUse, ErrNoService, or why the peer is down.
func (c *Conn) Post(t *Transaction) error { return c.post(t, t.Done, nil, posting{to: anyEpoch}) }

// PostWith is Post with done in place of t.Done, which it sets only if it
// returns nil.
func (c *Conn) PostWith(t *Transaction, done func(*Transaction, error)) error {
	return c.post(t, done, nil, posting{to: anyEpoch})
}

// Life returns a number that changes whenever everything posted so far is given
// up: because the peer restarted, or is down, or by Reset. It is never 0, and to post to that life fails.
func (c *Conn) Life() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint32(c.tx.epoch)
}

// PostTo is Post to that life of the connection and no other: what was meant for
// a peer that restarted since does not reach the new one. The error is then
// ErrPeerRestarted.
func (c *Conn) PostTo(life uint32, t *Transaction) error {
	return c.post(t, t.Done, nil, posting{to: in(life)})
}

// posting is how something is posted.
type posting struct {
	to   addressee
	flow *Flow // nil: to the peer's memory
}

func (c *Conn) post(t *Transaction, done func(*Transaction, error), waiter *writer, how posting) error {
	memory := how.flow == nil
	if memory {
		how.flow = &c.plain
	}
	if err := c.validate(t, memory); err != nil {
		return err
	}
	queued, inline, err := c.enqueue(t, done, waiter, how)
	if queued {
		c.ep.sched.Work(inline)
	}
	return err
}

// enqueue puts a transaction into the queue. It reports whether the connection is to be
// served, and whether the caller might do that at once.
func (c *Conn) enqueue(t *Transaction, done func(*Transaction, error), waiter *writer, how posting) (queued, inline bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tx := &c.tx
	if err := c.refuses(t, how); err != nil {
		return false, false, err
	}
	t.Done, t.progress = done, progress{}
	t.posted, t.waiter = true, waiter
	var now ack.Instant
	if tx.posted.Len() == 0 {
		now = c.ep.now()
	}
	inline = tx.posted.Len() == 0 && tx.unacked.InFlight() == 0 || c.ep.callerPolling && t.Bytes() >= inlineBytes
	return tx.post(now, how.flow, t), inline, nil
}

// refuses returns why a transaction cannot be posted. Guarded by mu.
func (c *Conn) refuses(t *Transaction, how posting) error {
	tx := &c.tx
	letter := how.flow.letters != nil
	switch {
	case t.posted:
		return ErrInUse
	case tx.err != nil:
		return tx.err
	case !how.to.is(tx.epoch):
		return c.peerError("post", errOtherLife)
	case c.ep.draining.Load() && !letter:
		return ErrClosed
	case !letter && how.flow.queued.Len() >= how.flow.most():
		tx.counters.QueueFull++
		return ErrQueueFull
	}
	if err := tx.kind.serves(how.flow.name, letter); err != nil {
		return c.peerError("post", err)
	}
	return nil
}

// inlineBytes makes a transaction that a caller of Post, with caller polling, sends itself: that
// takes longer than to wake another thread. Smaller ones wait for company.
const inlineBytes = 32 << 10

// Write posts a transaction and waits until it is done. With a context that is done
// it sends nothing. The context bounds the time it waits in the queue; once its first
// frame left, frames may be sent again from the caller's bytes, so Write returns when
// it is done: acknowledged, or failed because the peer is down, which takes GiveUp at
// most. It calls no Done: with one it fails, and sends nothing.
func (c *Conn) Write(ctx context.Context, t *Transaction) error {
	if t.Done != nil {
		return fmt.Errorf("dgrdma: write to peer %d: the transaction has a Done, which Write would not call: leave it nil, as Write returns what Done would get, or Post", c.peer.ID)
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
		err := c.post(t, nil, w, posting{to: anyEpoch})
		if waited {
			c.passRoom() // of which this one was told
		}
		if err == nil {
			break
		}
		if err != ErrQueueFull {
			return err
		}
		s.Await(ctx, &w.Waiter, never, c.Done(), c.tx.room)
		if ctx.Err() != nil {
			c.passRoom() // of which this one may have been told
			return context.Cause(ctx)
		}
	}
	if !s.Await(ctx, &w.Waiter, w.ready, nil, nil) {
		if ctx.Err() != nil && c.cancel(t) {
			return context.Cause(ctx)
		}
		s.Answered(&w.Waiter, w.ready)
	}
	return w.result()
}
