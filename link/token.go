package link

import (
	"context"
	"sync/atomic"
)

// token is held by one goroutine at a time. Unlike a mutex it may be held while its holder waits for
// the peer, and to take it ends with a context.
type token struct {
	held    atomic.Bool
	waiters atomic.Int32  // goroutines in take
	free    chan struct{} // capacity 1: the token was given while a goroutine waited
}

func (t *token) init() { t.free = make(chan struct{}, 1) }

func (t *token) try() bool { return t.held.CompareAndSwap(false, true) }

// take waits for the token. It fails with a context that is done, and with no other.
func (t *token) take(ctx context.Context) error {
	if t.try() {
		return nil
	}
	t.waiters.Add(1)
	defer t.waiters.Add(-1)
	for !t.try() {
		select {
		case <-t.free:
		case <-ctx.Done(): // a signal in free is left to the next one
			return context.Cause(ctx)
		}
	}
	return nil
}

func (t *token) give() {
	t.held.Store(false)
	t.pass()
}

func (t *token) pass() {
	if t.waiters.Load() > 0 {
		select {
		case t.free <- struct{}{}:
		default:
		}
	}
}
