package endpoint

import (
	"errors"
	"net"
)

// A callback may panic, or end its goroutine as t.FailNow does. On a goroutine of
// the endpoint a panic ends the process. On one of the application's, which helps,
// polls, posts or closes, it may be recovered; and of the end of a goroutine nobody
// hears. What the callback was part of is half done then, so the endpoint fails as
// when its transport does: nothing is received or sent any more, and what is pending
// is answered with ErrCallback. Who has a turn defers what that takes, each thing by
// itself: the logger, which is told, may be what does not return.

// broken notes why the endpoint failed, unless it is being closed.
func (e *Endpoint) broken(err error) {
	e.mu.Lock()
	first := e.transErr == nil && !(e.closed && errors.Is(err, net.ErrClosed))
	if first {
		e.transErr = err
		e.failed.Store(true)
	}
	e.mu.Unlock()
	if first {
		e.kick()
		if l := e.cfg.Logger; l != nil {
			l.Error("endpoint failed", "endpoint", e.cfg.ID, "err", err)
		}
	}
}

// failure returns why the endpoint failed, or nil.
func (e *Endpoint) failure() error {
	if !e.failed.Load() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.transErr
}

// dropBatch ends a batch of datagrams in which a callback did not return.
func (e *Endpoint) dropBatch() {
	defer e.after.run()
	defer e.batching.Store(false)
	e.broken(ErrCallback)
}

// dropTurn ends a turn to send in which a callback did not return. Guarded by
// turnMu.
func (e *Endpoint) dropTurn() {
	defer e.broken(ErrCallback)
	b := &e.batch
	clear(b.frames)
	clear(b.settle)
	b.frames, b.settle, b.nSmall = b.frames[:0], b.settle[:0], 0
	clear(e.serving)
}
