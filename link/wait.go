package link

import (
	"context"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// waiting is how one goroutine waits for words of the peer.
type waiting struct {
	dgrdma.Waiter
	host *Host
	what readier // of the goroutine that waits
	look func() bool
}

func (w *waiting) init(h *Host) {
	w.Init()
	w.host = h
	w.look = func() bool { return w.what.ready() }
}

// readier says whether what is waited for is there.
type readier interface{ ready() bool }

// until waits until r is ready. What is ready wins over a link that is down, and
// that over a context that is done. Without down, r is ready once all that is under way has
// ended, for which until waits beyond the end of the connection.
func (w *waiting) until(ctx context.Context, l *Link, down <-chan struct{}, r readier) error {
	if r.ready() {
		return nil
	}
	w.what = r
	if w.host.ep.Await(ctx, &w.Waiter, w.look, down, l.gone) {
		return nil
	}
	select {
	case <-l.gone:
		l.lost()
		if down == nil {
			// What was acknowledged before may still have to be told.
			w.host.ep.Await(ctx, &w.Waiter, w.look, nil, nil)
		}
	default:
	}
	switch {
	case r.ready():
		return nil
	case ctx.Err() == nil || down != nil && l.failed() != nil:
		return l.Err()
	default:
		return context.Cause(ctx)
	}
}

// turn lets one goroutine at a time through, and waits no longer than a context.
// Unlike a mutex it may be held while its owner waits for the peer.
type turn struct {
	held  atomic.Bool
	queue atomic.Int32  // who waits
	free  chan struct{} // capacity 1: it was given while someone waited
}

func (t *turn) init() { t.free = make(chan struct{}, 1) }

func (t *turn) try() bool { return t.held.CompareAndSwap(false, true) }

// take waits for the turn. It fails with a context that is done, and with no other.
func (t *turn) take(ctx context.Context) error {
	if t.try() {
		return nil
	}
	t.queue.Add(1)
	defer t.queue.Add(-1)
	for !t.try() {
		select {
		case <-t.free:
		case <-ctx.Done(): // what was given is left to the next one
			return context.Cause(ctx)
		}
	}
	return nil
}

func (t *turn) give() {
	t.held.Store(false)
	t.pass()
}

func (t *turn) pass() {
	if t.queue.Load() > 0 {
		select {
		case t.free <- struct{}{}:
		default:
		}
	}
}
