package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dgrdma/dgrdma/rdmap"
)

// call is one request that a goroutine waits for.
type call struct {
	work Work
	c    Completion
	done chan struct{}
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// Complete makes a call what a stream tells.
func (c *call) Complete(done *rdmap.Completion) {
	c.c = Completion(*done)
	q := c.c.QueuePair()
	c.done <- struct{}{} // from here on it is the waiting goroutine's
	q.rouse()
}

// wait returns when the request is done. When ctx ends first, so does the queue pair, because the
// buffers of a request cannot be had back in any other way.
func (c *call) wait(ctx context.Context, q *QueuePair) error {
	select {
	case <-c.done:
		return c.c.Err
	default:
	}
	q.lending.waiters.Add(1)
	defer q.lending.waiters.Add(-1)
	for {
		q.help(ctx, func() bool { return len(c.done) > 0 })
		select {
		case <-c.done:
			return c.c.Err
		case <-q.lending.offered:
		case <-ctx.Done():
			q.giveUp(ctx, c)
			<-c.done
			if c.c.Err == nil {
				return nil
			}
			return fmt.Errorf("%w, and the connection was given up with the call", ctx.Err())
		}
	}
}

// giveUp ends the connection since the context of a call has ended that is not done.
func (q *QueuePair) giveUp(ctx context.Context, c *call) {
	q.mu.Lock()
	if len(c.done) > 0 {
		q.mu.Unlock()
		return
	}
	if q.gaveUp == nil && !q.closing {
		err := ctx.Err()
		if cause := context.Cause(ctx); cause != err {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		q.gaveUp = fmt.Errorf("this side gave it up, as the context of a call ended amid that: %w", err)
	}
	q.mu.Unlock()
	q.conn.Abort()
}

// do carries out a request and returns how it completed.
func (q *QueuePair) do(ctx context.Context, w Work) (Completion, error) {
	if err := ctx.Err(); err != nil {
		return Completion{}, err // nothing has been asked for that had to be called back
	}
	c := calls.Get().(*call)
	defer calls.Put(c)
	c.work = w
	err := q.post(&c.work, c)
	for errors.Is(err, ErrFull) {
		if err = q.until(ctx, func() bool { return q.stream.Room() > 0 }); err == nil {
			err = q.post(&c.work, c)
		}
	}
	c.work = Work{}
	if err != nil {
		return Completion{}, q.refused(w.Op, err)
	}
	return q.outcome(w.Op, c, c.wait(ctx, q))
}

// outcome is how a call ended, in words if it failed.
func (q *QueuePair) outcome(op Op, c *call, err error) (Completion, error) {
	if err != nil {
		err = fmt.Errorf("%v with %v: %w", op, q.RemoteAddr(), err)
	}
	return c.c, err
}

// refused is the error of a call whose request could not be posted. If that is because the connection has ended, the call fails
// as if it had ended a moment later: who calls cannot know.
func (q *QueuePair) refused(op Op, err error) error {
	q.mu.Lock()
	cause := q.stream.Err()
	q.mu.Unlock()
	if cause == nil || !errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%v with %v: %w: %w", op, q.RemoteAddr(), ErrFlushed, cause)
}

// Write writes data to the peer's memory, from offset at of key on. That it is done says that data
// can be used again, not that it has arrived (RDMAP-064): only what the peer answers after it says that.
//
// Of this and the other calls: if the queue is full, they wait for room. If ctx ends while the request is under way, so
// does the queue pair, since there is no other way to have the buffers back, and [QueuePair.Err] says so; if it has ended before, nothing happens.
// [ErrBounds]: the bytes are not all within the key. [ErrNotAgreed]: [Options.Extensions] does not have the operation.
// [ErrFlushed]: the connection ended first, even before the call, for the reason that is wrapped. [ErrClosed]: the program has
// closed the queue pair.
func (q *QueuePair) Write(ctx context.Context, key Key, at uint32, data []byte) error {
	k, err := key.Part(at, length32(data))
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: OpWrite, STag: k.STag, TO: k.Offset, Data: data})
	return err
}

// Read reads len(data) bytes of the peer's memory, from offset at of key on.
func (q *QueuePair) Read(ctx context.Context, data []byte, key Key, at uint32) error {
	k, err := key.Part(at, length32(data))
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: OpRead, STag: k.STag, TO: k.Offset, Data: data})
	return err
}

// length32 is the length of a buffer, or too much for any key.
func length32(b []byte) uint32 { return uint32(min(uint64(len(b)), 1<<32-1)) }

// Send sends data into a receive of the peer, which must be there. That it is done says that data can be
// used again.
func (q *QueuePair) Send(ctx context.Context, data []byte) error {
	_, err := q.do(ctx, Work{Op: OpSend, Data: data})
	return err
}

// Receive posts data as a receive and waits for the message that it takes, of which [Completion.Length] bytes
// are in data. If ctx ends first, so does the queue pair: to wait for a while only, post receives and use
// [CompletionQueue.Wait]. A peer that sends before this side has posted a receive ends the connection: see [QueuePair.PostReceive].
func (q *QueuePair) Receive(ctx context.Context, data []byte) (Completion, error) {
	if err := ctx.Err(); err != nil {
		return Completion{}, err
	}
	c := calls.Get().(*call)
	defer calls.Put(c)
	if err := q.postReceive(Receive{Data: data}, c); err != nil {
		return Completion{}, q.refused(OpReceive, err)
	}
	return q.outcome(OpReceive, c, c.wait(ctx, q))
}

// FetchAdd adds to the eight bytes at offset at of key, and returns what they were before: a number in the order
// of bytes of the peer's machine, at an address that is a multiple of eight. It is atomic to all other atomic operations
// on the peer's machine, its own of package sync/atomic included. It needs [Atomics], and [RemoteAtomic].
func (q *QueuePair) FetchAdd(ctx context.Context, key Key, at uint32, add uint64) (old uint64, err error) {
	k, err := key.Part(at, 8)
	if err != nil {
		return 0, err
	}
	c, err := q.do(ctx, Work{Op: OpFetchAdd, STag: k.STag, TO: k.Offset, Operand: add})
	return c.Old, err
}

// CompareSwap sets the eight bytes at offset at of key to swap if they are compare, and returns what
// they were before. What is said of [QueuePair.FetchAdd] is true of it, too.
func (q *QueuePair) CompareSwap(ctx context.Context, key Key, at uint32, compare, swap uint64) (old uint64, err error) {
	k, err := key.Part(at, 8)
	if err != nil {
		return 0, err
	}
	c, err := q.do(ctx, Work{Op: OpCompareSwap, STag: k.STag, TO: k.Offset, Compare: compare, Operand: swap})
	return c.Old, err
}

// AtomicWrite sets the eight bytes at offset at of key at once, after all that was asked for before it has
// succeeded: who sees them sees that, too. The address is a multiple of eight. It needs [Commit], and [RemoteWrite].
func (q *QueuePair) AtomicWrite(ctx context.Context, key Key, at uint32, data [8]byte) error {
	k, err := key.Part(at, 8)
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: OpAtomicWrite, STag: k.STag, TO: k.Offset, Payload: data})
	return err
}

// Flush returns when the n bytes from offset at of key on, with all that was written there before, are where how
// says: in storage ([FlushPersistent]), or visible to all of the peer's machine ([FlushGlobal]), or both. It needs
// [Commit], and those rights.
func (q *QueuePair) Flush(ctx context.Context, key Key, at, n uint32, how Rights) error {
	k, err := key.Part(at, n)
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: OpFlush, STag: k.STag, TO: k.Offset, Length: n,
		Persistent: how&FlushPersistent != 0, Global: how&FlushGlobal != 0})
	return err
}

// Verify returns the hash of the n bytes from offset at of key on, as the peer's storage has them, by the
// algorithm of its region. If want is not empty and the hash is another, that is an error which ends the connection. It
// needs [Commit], and the right [Verify].
func (q *QueuePair) Verify(ctx context.Context, key Key, at, n uint32, want []byte) ([]byte, error) {
	k, err := key.Part(at, n)
	if err != nil {
		return nil, err
	}
	c, err := q.do(ctx, Work{Op: OpVerify, STag: k.STag, TO: k.Offset, Length: n, Hash: want})
	return append([]byte(nil), c.Hash[:c.HashSize]...), err
}
