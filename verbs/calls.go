package verbs

import (
	"context"
	"errors"
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

// Complete is for streams.
func (c *call) Complete(done *rdmap.Completion) {
	c.c = *done
	c.done <- struct{}{}
}

// wait returns when the request is done. When ctx ends first, so does the queue pair, because the
// buffers of a request cannot be had back in any other way.
func (c *call) wait(ctx context.Context, q *QueuePair) error {
	select {
	case <-c.done:
		return c.c.Err
	default:
	}
	select {
	case <-c.done:
		return c.c.Err
	case <-ctx.Done():
		q.conn.Abort()
		<-c.done
		if c.c.Err == nil {
			return nil
		}
		return ctx.Err()
	}
}

// do carries out a request and returns how it completed.
func (q *QueuePair) do(ctx context.Context, w Work) (Completion, error) {
	c := calls.Get().(*call)
	defer calls.Put(c)
	c.work = w
	c.work.To = c
	err := q.Post(&c.work)
	for errors.Is(err, ErrFull) {
		if err = q.until(ctx, func() bool { return q.stream.Room() > 0 }); err == nil {
			err = q.Post(&c.work)
		}
	}
	c.work = Work{}
	if err != nil {
		return Completion{}, err
	}
	err = c.wait(ctx, q)
	return c.c, err
}

// The calls that follow carry out one request each and return when it is done. If ctx ends before,
// the queue pair ends with it, and the buffers are the caller's again.

// Write writes data to the peer's memory, from offset at of key on. That it is done says that data
// can be used again, not that it has arrived (RDMAP-064): only what the peer answers after it says that.
func (q *QueuePair) Write(ctx context.Context, key Key, at uint32, data []byte) error {
	k, err := key.Part(at, length32(data))
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: rdmap.OpWrite, STag: k.STag, TO: k.Offset, Data: data})
	return err
}

// Read reads len(data) bytes of the peer's memory, from offset at of key on.
func (q *QueuePair) Read(ctx context.Context, data []byte, key Key, at uint32) error {
	k, err := key.Part(at, length32(data))
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: rdmap.OpRead, STag: k.STag, TO: k.Offset, Data: data})
	return err
}

// length32 is the length of a buffer, or too much for any key.
func length32(b []byte) uint32 { return uint32(min(uint64(len(b)), 1<<32-1)) }

// Send sends data into a receive of the peer, which must be there.
func (q *QueuePair) Send(ctx context.Context, data []byte) error {
	_, err := q.do(ctx, Work{Op: rdmap.OpSend, Data: data})
	return err
}

// Receive posts data as a receive and waits for the message that it takes. A peer that sends before
// ends the connection: see [QueuePair.PostReceive].
func (q *QueuePair) Receive(ctx context.Context, data []byte) (Completion, error) {
	c := calls.Get().(*call)
	defer calls.Put(c)
	if err := q.PostReceive(Receive{Data: data, To: c}); err != nil {
		return Completion{}, err
	}
	err := c.wait(ctx, q)
	return c.c, err
}

// FetchAdd adds to the eight bytes at offset at of key, and returns what they were before.
func (q *QueuePair) FetchAdd(ctx context.Context, key Key, at uint32, add uint64) (old uint64, err error) {
	k, err := key.Part(at, 8)
	if err != nil {
		return 0, err
	}
	c, err := q.do(ctx, Work{Op: rdmap.OpFetchAdd, STag: k.STag, TO: k.Offset, Operand: add})
	return c.Old, err
}

// CompareSwap sets the eight bytes at offset at of key to swap if they are compare, and returns what
// they were before.
func (q *QueuePair) CompareSwap(ctx context.Context, key Key, at uint32, compare, swap uint64) (old uint64, err error) {
	k, err := key.Part(at, 8)
	if err != nil {
		return 0, err
	}
	c, err := q.do(ctx, Work{Op: rdmap.OpCompareSwap, STag: k.STag, TO: k.Offset, Compare: compare, Operand: swap})
	return c.Old, err
}

// AtomicWrite sets the eight bytes at offset at of key at once, after all that was asked for before
// it has succeeded.
func (q *QueuePair) AtomicWrite(ctx context.Context, key Key, at uint32, data [8]byte) error {
	k, err := key.Part(at, 8)
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: rdmap.OpAtomicWrite, STag: k.STag, TO: k.Offset, Payload: data})
	return err
}

// Flush returns when the n bytes from offset at of key on are where how says: persistent, or
// globally visible, or both.
func (q *QueuePair) Flush(ctx context.Context, key Key, at, n uint32, how Rights) error {
	k, err := key.Part(at, n)
	if err != nil {
		return err
	}
	_, err = q.do(ctx, Work{Op: rdmap.OpFlush, STag: k.STag, TO: k.Offset, Length: n,
		Persistent: how&FlushPersistent != 0, Global: how&FlushGlobal != 0})
	return err
}

// Verify returns the hash of the n bytes from offset at of key on, as the peer's storage has them. If
// want is not empty, it is an error that ends the connection if the hash is another.
func (q *QueuePair) Verify(ctx context.Context, key Key, at, n uint32, want []byte) ([]byte, error) {
	k, err := key.Part(at, n)
	if err != nil {
		return nil, err
	}
	c, err := q.do(ctx, Work{Op: rdmap.OpVerify, STag: k.STag, TO: k.Offset, Length: n, Hash: want})
	return append([]byte(nil), c.Hash[:c.HashSize]...), err
}
