package link

import (
	"context"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// waiting is how one goroutine waits for words of the peer.
type waiting struct {
	dgrdma.Waiter
	host      *Host
	condition condition // of the goroutine that waits
	isReady   func() bool
}

func (w *waiting) init(h *Host) {
	w.Init()
	w.host = h
	w.isReady = func() bool { return w.condition.isReady() }
}

// condition says whether what a goroutine waits for is there.
type condition interface{ isReady() bool }

// until waits until r is ready. What is ready wins over a link that is down, and that over a context
// that is done. Without down, r is ready once all that is in flight has completed, and until waits for
// that beyond the end of the connection.
func (w *waiting) until(ctx context.Context, l *Link, down <-chan struct{}, r condition) error {
	if r.isReady() {
		return nil
	}
	w.condition = r
	if w.host.ep.Await(ctx, &w.Waiter, w.isReady, down, l.gone) {
		return nil
	}
	select {
	case <-l.gone:
		l.connectionLost()
		if down == nil {
			// What was acknowledged before may not have completed yet.
			w.host.ep.Await(ctx, &w.Waiter, w.isReady, nil, nil)
		}
	default:
	}
	switch {
	case r.isReady():
		return nil
	case ctx.Err() == nil || down != nil && l.failure() != nil:
		return l.Err()
	default:
		return context.Cause(ctx)
	}
}
