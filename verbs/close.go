package verbs

import (
	"context"
	"time"

	"github.com/dgrdma/dgrdma/rdmap"
)

// Close ends the connection when all that is posted is done and with the peer, and returns when everything has
// completed. The peer has ten seconds for what it has to answer, and for its own end. What nobody has
// received by then completes with [ErrFlushed].
func (q *QueuePair) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return q.Shutdown(ctx)
}

const closeTime = 10 * time.Second

// Shutdown is [QueuePair.Close], with ctx in place of the ten seconds. The error is that of ctx if
// something was not done, or why the connection had ended before.
func (q *QueuePair) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closing
	q.closing = true
	q.mu.Unlock()
	err := q.until(ctx, func() bool { return !q.stream.Busy() && !q.turn.taken })
	if err == nil && first {
		err = q.barrier(ctx)
	}
	if err == nil && first {
		if q.conn.CloseWrite() != nil {
			q.conn.Close() // there is no half of it that could be closed
		}
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		q.conn.Abort()
		<-q.done
		if err == nil {
			err = ctx.Err()
		}
	}
	return err
}

// barrier returns when the peer has taken what was sent. siw (S9) throws away what it has not looked at when it sees
// the end of the connection, and sees the end first if both come in one segment.
//
// Our own kind answers a Read of nothing, whatever that names (RDMAP-040), when all before it is in place. So
// should every peer; but siw, if it is still busy with the answer to another Read, answers with the data of
// that one (S6). Of a stranger the word of its TCP has to do.
func (q *QueuePair) barrier(ctx context.Context) error {
	if !q.conn.Agreed().Long {
		return q.acknowledged(ctx)
	}
	c := calls.Get().(*call)
	defer calls.Put(c)
	c.work = Work{Op: OpRead}
	q.mu.Lock()
	if q.cfg.ORD == 0 || !q.stream.Asked() {
		q.mu.Unlock()
		return nil
	}
	err := q.stream.PostTo((*rdmap.Work)(&c.work), c)
	mine := err == nil && q.turn.claim()
	q.mu.Unlock()
	if err != nil {
		return err
	}
	if mine {
		q.sendAway()
	}
	return c.wait(ctx, q)
}

// acknowledged waits until the peer's TCP has all that was sent.
func (q *QueuePair) acknowledged(ctx context.Context) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for q.conn.Unacknowledged() > 0 {
		select {
		case <-tick.C:
		case <-q.done:
			return q.cause
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Abort ends the connection at once, and returns when everything has completed.
func (q *QueuePair) Abort() {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	q.conn.Abort()
	<-q.done
}

// until waits for something that is told by changed.
func (q *QueuePair) until(ctx context.Context, there func() bool) error {
	wake := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})
	defer wake()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting++
	defer func() { q.waiting-- }()
	for !there() {
		select {
		case <-q.done:
			return q.cause
		default:
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		q.changed.Wait()
	}
	return nil
}
