package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/dgrdma/dgrdma/rdmap"
)

// Close ends the connection when all that is posted is done and with the peer, and returns when everything has
// completed. The peer has ten seconds for what it has to answer, and for its own end. What nobody has
// received by then completes with [ErrFlushed]. Both sides may close at the same time, or one after the other.
//
// What the peer has under way ends with the connection, and a Read of it fails: sides that end at different
// moments agree on the end first, as by a last Send.
func (q *QueuePair) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return q.Shutdown(ctx)
}

const closeTime = 10 * time.Second

// Shutdown is [QueuePair.Close], with ctx in place of the ten seconds. The error is that of ctx if
// something was not done, or why the connection had ended before: [ErrPeerClosed] if the peer closed it and
// its TCP did not tell within a second that it has all that was sent, which over TLS nobody can tell.
func (q *QueuePair) Shutdown(ctx context.Context) error {
	// Over TLS even the end of a direction may wait for the peer.
	defer context.AfterFunc(ctx, func() { q.conn.Abort() })()
	if ctx.Err() != nil {
		q.conn.Abort() // here, as the peer might close its side before the goroutine of AfterFunc runs
	}
	q.mu.Lock()
	first := !q.closing
	q.closing = true
	q.mu.Unlock()
	err := q.until(ctx, func() bool { return q.stream.Err() == nil && !q.stream.Busy() && !q.turn.taken })
	if err == nil && first {
		q.mu.Lock()
		q.barring = true
		q.mu.Unlock()
		err = q.barrier(ctx)
	}
	if err == nil && first {
		q.mu.Lock()
		q.halved = true
		q.mu.Unlock()
		if q.conn.CloseWrite() != nil {
			q.conn.Close() // there is no half of it that could be closed
		}
	}
	<-q.done
	if q.settled {
		return nil // even if the peer closed first, and did not answer the barrier
	}
	over := ctx.Err()
	if err == nil || over != nil && errors.Is(err, net.ErrClosed) { // the context closed the connection
		err = over
	}
	if over != nil && errors.Is(err, over) {
		err = fmt.Errorf("close %v: not all that was posted was done in time, or the peer has not closed its side: %w", q, err)
	}
	return err
}

// barrier returns when the peer has taken what was sent. siw (S9) throws away what it has not looked at when it sees
// the end of the connection, and sees the end first if both come in one segment.
//
// Our own kind answers a Read of nothing, whatever that names (RDMAP-040), when all before it is in place. So
// should every peer; but siw, if it is still busy with the answer to another Read, answers with the data of
// that one (S6). Of a stranger, and of a peer that answers no Reads, the word of its TCP has to do.
func (q *QueuePair) barrier(ctx context.Context) error {
	if q.cfg.ORD == 0 || !q.conn.Agreed().Long {
		err := q.acknowledged(ctx)
		if err != nil && ctx.Err() == nil {
			<-q.done // it has ended, or been reset
			return q.cause
		}
		return err
	}
	c := calls.Get().(*call)
	defer calls.Put(c)
	c.work = Work{Op: OpRead}
	q.mu.Lock()
	if !q.stream.Asked() {
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

// acknowledged waits until the peer's TCP has all that was sent. It looks ever more seldom: a peer may take nothing for long, and
// be one of thousands.
func (q *QueuePair) acknowledged(ctx context.Context) error {
	pause := time.Millisecond
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		switch n, err := q.conn.Unacknowledged(); {
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		select {
		case <-timer.C:
			pause += pause / 2
			timer.Reset(pause)
		case <-q.conn.Closed():
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle finds out whether the peer, which has closed the connection, has all that this side has posted. The word of the
// peer's TCP may be a round trip behind; who waits in Shutdown waits for it as long as its context lets it.
func (q *QueuePair) settle() {
	q.mu.Lock()
	ctx, halved := q.ctx, q.halved
	q.settled = halved // the barrier said so
	if !q.closing {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lastWords)
		defer cancel()
	}
	q.mu.Unlock()
	// Of a connection that is not the system's nobody knows what the peer has. Who sends may not have noted yet
	// what has left, and has been answered.
	if halved || q.conn.Blocks() || q.until(ctx, func() bool { return !q.turn.taken }) != nil {
		return
	}
	q.mu.Lock()
	q.settled = q.barring || !q.stream.Busy()
	settled := q.settled
	q.mu.Unlock()
	if !settled {
		return
	}
	n, err := q.conn.Unacknowledged()
	if n > 0 && err == nil {
		q.mu.Lock()
		q.halved = true
		q.mu.Unlock()
		_ = q.conn.CloseWrite() // TCP acknowledges that at once, and other bytes up to 40 ms later
		err = q.acknowledged(ctx)
	}
	if err != nil {
		q.mu.Lock()
		q.settled = false
		q.mu.Unlock()
	}
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
