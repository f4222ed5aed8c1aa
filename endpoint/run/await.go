package run

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// awaitPoll is how long a caller of Await looks for datagrams at a time, and so how late
// it may notice what else it waits for. Arbitrary: short for a person, long compared with
// a batch.
const awaitPoll = 2 * time.Millisecond

// Waiter is a goroutine that waits for what an engine brings about. Init prepares it;
// Rouse has it look again.
type Waiter struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// Init prepares a waiter.
func (w *Waiter) Init() { w.wake = make(chan struct{}, 1) }

// Asleep reports whether Rouse would do something.
func (w *Waiter) Asleep() bool { return w.asleep.Load() }

// Rouse has the waiter look again. It is called after something changed that may be
// waited for, and costs a load if the waiter is not asleep.
func (w *Waiter) Rouse() {
	if w.asleep.Load() {
		patience.Leave(w.wake)
	}
}

// Await waits until ready returns true, a context is done, or one of two channels is
// closed. In the course of that it runs the engine, if no other goroutine does, or if
// that pays. It calls ready at first, whenever the waiter is roused, and after every batch
// that it applies. It returns the last result of ready: also false if the scheduler was
// closed, or broke and has no goroutines of its own. One goroutine at a time may wait
// with a waiter.
func (s *Scheduler[W]) Await(ctx context.Context, w *Waiter, ready func() bool, over, gone <-chan struct{}) bool {
	if ready() {
		return true
	}
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	u := until{ready: ready, done: ctx.Done(), over: over, gone: gone}
	for {
		var free, offered <-chan struct{}
		switch {
		case s.own:
			s.pollAsCaller(&u)
			offered = s.offered
		case s.broken.Load():
			s.serve() // which answers all that can be answered
			return ready()
		default:
			free = s.receiveLock.free
		}
		if u.ended {
			return ready()
		}
		w.asleep.Store(true)
		if ready() {
			w.asleep.Store(false)
			return true
		}
		select {
		case <-free:
			w.asleep.Store(false)
			s.pollOnce(&u)
		case <-w.wake:
		case <-offered:
		case <-s.stop:
			<-s.done // Close answers everything, and ready may wait for an answer
			u.ended = true
		case <-u.done:
			u.ended = true
		case <-u.over:
			u.ended = true
		case <-u.gone:
			u.ended = true
		}
		w.asleep.Store(false)
		if u.ended || ready() {
			return ready()
		}
	}
}

// Answered waits until ready returns true, which must follow from what Serve or Deliver
// answers. It waits also if the scheduler broke and has no goroutines of its own: the
// holder of the send lock may keep answers back. Close answers everything.
func (s *Scheduler[W]) Answered(w *Waiter, ready func() bool) {
	for !s.Await(context.Background(), w, ready, nil, nil) {
		w.asleep.Store(true)
		if ready() {
			w.asleep.Store(false)
			return
		}
		over := false
		select {
		case <-w.wake:
		case <-s.wake: // for the goroutine that serves, which is this one in Await
		case <-s.done:
			over = true
		}
		w.asleep.Store(false)
		if over {
			return
		}
	}
}

// pollOnce runs the engine for a moment, and releases the receive lock, which the caller
// holds.
func (s *Scheduler[W]) pollOnce(u *until) {
	defer s.receiveLock.unlock()
	if !u.isMet() { // which select may have overlooked
		s.progress(awaitPoll) // an error breaks the scheduler, which Await then sees
	}
}

// until is what ends a wait.
type until struct {
	ready            func() bool
	done, over, gone <-chan struct{}
	ended            bool // one of these channels ended it, perhaps with its only token
}

// isMet reports whether the wait is over. A poller calls it after every batch of datagrams:
// while they keep coming, nothing else would look.
func (u *until) isMet() bool {
	if u.ready() {
		return true
	}
	select {
	case <-u.done:
	case <-u.over:
	case <-u.gone:
	default:
		return false
	}
	u.ended = true
	return true
}

// Sleep is Await of an engine that other goroutines run.
func (w *Waiter) Sleep(ctx context.Context, ready func() bool, over, gone <-chan struct{}) bool {
	for {
		w.asleep.Store(true)
		ended := false
		if !ready() {
			select {
			case <-w.wake:
			case <-ctx.Done():
				ended = true
			case <-over:
				ended = true
			case <-gone:
				ended = true
			}
		}
		w.asleep.Store(false)
		if ended || ready() {
			return ready()
		}
	}
}
