package verbs

import (
	"context"
	"time"
)

// Close ends the connection when all that is posted is done, and returns when everything has completed. The
// peer has ten seconds for what it has to answer, and for its own end. What nobody has received by then completes with [ErrFlushed].
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
