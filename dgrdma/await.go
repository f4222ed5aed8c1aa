package dgrdma

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/run"
)

// Waiter is a goroutine that waits, see [Endpoint.Await]. Init prepares it; Rouse has
// it look again, and is called after something changed that it may wait for.
type Waiter = run.Waiter

// Progress drives the endpoint: it takes the datagrams that have come, for the first of
// which it waits no longer than wait, acts on them and on what is due, sends, and calls
// Done. It returns how many datagrams it found at first: none if another goroutine
// received all the while, as one of the endpoint's own does without [Config.Manual], for
// whose turn it waits as long. With [Forever] it returns when something was done. After Close it
// returns [ErrClosed].
func (e *Endpoint) Progress(wait time.Duration) (int, error) {
	return e.sched.Progress(wait)
}

// Await is for layers above whose callers wait: it waits until ready says yes, the
// context is done, or one of two channels, which may be nil, is closed or has something.
// In that time it runs the endpoint, if no other goroutine does ([Config.Manual]) or if
// that pays. It calls ready at first, whenever the waiter is roused, and after every batch
// of datagrams that it receives. It returns the last result of ready: also false if the
// endpoint was closed, or failed and has no goroutines of its own.
func (e *Endpoint) Await(ctx context.Context, w *Waiter, ready func() bool, over, gone <-chan struct{}) bool {
	return e.sched.Await(ctx, w, ready, over, gone)
}

// AfterBatch is for layers above that take memory back from a peer: it calls f,
// which must not block, when nothing that Admit allowed before this call is still
// to be placed.
func (e *Endpoint) AfterBatch(f func()) {
	e.sched.AfterBatch(f)
}

const (
	// copyAhead is how much may wait to be sent, with caller polling: what waits for
	// longer leaves the core's own cache, and is read from memory when it is sent. Chosen out of 1/4,
	// 1/2, 1 and 2 MiB: with less there is not always something to send.
	copyAhead = 512 << 10
	// mostAhead is how much may wait otherwise. Arbitrary, well above what is under way
	// on a fast wire.
	mostAhead = 16 << 20
)

// Ahead returns how many bytes are worth posting before what was posted earlier is in
// frames: more only waits in the queue. See [Transaction.Packed].
func (e *Endpoint) Ahead() int {
	if e.callerPolling {
		return copyAhead
	}
	return mostAhead
}

func never() bool { return false }

// writer is a goroutine that waits in Write.
type writer struct {
	Waiter
	done  atomic.Bool
	err   error
	ready func() bool
}

func newWriter() *writer {
	w := &writer{}
	w.Init()
	w.ready = w.done.Load
	return w
}

// answer is called once for each Write.
func (w *writer) answer(err error) {
	w.err = err
	w.done.Store(true)
	w.Rouse()
}

// result returns the answer, and prepares for another Write.
func (w *writer) result() error {
	if !w.done.Swap(false) {
		return ErrClosed
	}
	return w.err
}
