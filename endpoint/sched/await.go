package sched

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// atATime is how long who waits in Await looks for datagrams at a time, and so how
// long it may not notice what else it waits for. Arbitrary: short for a person, long
// beside a batch.
const atATime = 2 * time.Millisecond

// driveFor is how long who drives waits for datagrams before it looks whether the
// scheduler is about to be closed. Arbitrary: short for a person, long beside a batch.
const driveFor = 20 * time.Millisecond

// Progress drives the engine: it takes the datagrams that have come, waiting no longer
// than wait for the first, applies them, acts on deadlines that passed, sends what is
// due and delivers answers. It returns how many datagrams there were at first: none if
// another goroutine received all the while. With [Forever] it returns when something was
// done.
func (s *Scheduler[W]) Progress(wait time.Duration) (int, error) {
	if !s.receiving.tryTake() {
		if wait == 0 {
			return 0, s.closing()
		}
		var over <-chan time.Time
		if wait >= 0 {
			over = time.After(wait)
		}
		select {
		case <-s.receiving.free:
			wait = 0
		case <-s.ending:
			return 0, s.cfg.ErrClosed
		case <-over:
			return 0, s.closing()
		}
	}
	defer s.receiving.give()
	return s.progress(wait)
}

// progress does so. The caller has the turn to receive.
func (s *Scheduler[W]) progress(wait time.Duration) (n int, err error) {
	whole := false
	defer func() {
		if !whole {
			s.Break(s.cfg.ErrCallback)
		}
	}()
	if err = s.Err(); err == nil {
		n, err = s.receiveUntil(wait)
	}
	if err != nil && err != s.cfg.ErrClosed {
		s.Break(err)
		s.serve()
	} else if !s.own {
		// Else the scheduler's own goroutine sees to it.
		if s.alarm.next() <= s.engine.Now() {
			s.expire()
		}
		select {
		case <-s.wake:
			s.serve()
		default:
			if s.pending.Load() {
				s.serve()
			}
		}
	}
	whole = true
	return n, err
}

// closing returns ErrClosed once Close has begun.
func (s *Scheduler[W]) closing() error {
	select {
	case <-s.ending:
		return s.cfg.ErrClosed
	default:
		return nil
	}
}

// receiveUntil is receive that ends when something else is due, or when the scheduler is
// about to be closed.
func (s *Scheduler[W]) receiveUntil(wait time.Duration) (n int, err error) {
	left := s.untilDue(wait)
	for ; left < 0 || left > driveFor; left = s.untilDue(wait) {
		began := s.engine.Now()
		if n, err = s.receive(driveFor); n > 0 || err != nil {
			return n, err
		}
		if err = s.closing(); err != nil {
			return 0, err
		}
		if wait > 0 {
			wait = max(0, wait-s.engine.Now().Sub(began))
		}
	}
	return s.receive(left)
}

// untilDue returns how long may be waited for datagrams: until something else is due,
// if nobody else sees to that.
func (s *Scheduler[W]) untilDue(wait time.Duration) time.Duration {
	if s.own || wait == 0 {
		return wait
	}
	least := func(a, b time.Duration) time.Duration {
		if a < 0 {
			return b
		}
		return min(a, b)
	}
	if len(s.wake) > 0 {
		return 0
	}
	if s.pending.Load() {
		if !s.sending.taken() {
			return 0
		}
		wait = least(wait, claimFor) // the transport may hold up the goroutine that has the turn
	}
	next := s.alarm.next()
	if next == Never {
		return wait
	}
	return least(wait, max(0, next.Sub(s.engine.Now())))
}

// Waiter is a goroutine that waits for what an engine brings about. Init prepares it;
// Rouse has it look again, and is called after something changed that it may wait for.
type Waiter struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// Init prepares a waiter.
func (w *Waiter) Init() { w.wake = make(chan struct{}, 1) }

// Asleep reports whether Rouse would do something.
func (w *Waiter) Asleep() bool { return w.asleep.Load() }

// Rouse has the waiter look again. It is called after something changed that may be
// waited for, and costs a load if nobody sleeps.
func (w *Waiter) Rouse() {
	if w.asleep.Load() {
		patience.Leave(w.wake)
	}
}

// Await waits until ready says yes, a context is done, or one of two channels is
// closed, and drives the engine meanwhile where nobody else does, or where that pays.
// It asks ready at first, whenever the waiter is roused, and while it drives after
// every batch. It reports what ready said last: no, too, if the scheduler was closed, or
// if nobody drives it and it broke. One goroutine at a time may wait with a waiter.
func (s *Scheduler[W]) Await(ctx context.Context, w *Waiter, ready func() bool, over, gone <-chan struct{}) bool {
	if ready() {
		return true
	}
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	u := until{ready: ready, done: ctx.Done(), over: over, gone: gone}
	for {
		var mine, offered <-chan struct{}
		switch {
		case s.own:
			s.help(&u)
			offered = s.offered
		case s.broken.Load():
			s.serve() // which answers all that will be answered
			return ready()
		default:
			mine = s.receiving.free
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
		case <-mine:
			w.asleep.Store(false)
			s.driveOnce(&u)
		case <-w.wake:
		case <-offered:
		case <-s.stop:
			<-s.done // whoever closes answers everything, which may be waited for
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

// Answered waits until ready says yes to what Serve or Deliver answers: also when the scheduler
// broke and nobody drives it, as who is serving may hold answers back. Close answers
// everything.
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
		case <-s.wake: // for whoever serves, which Await does
		case <-s.done:
			over = true
		}
		w.asleep.Store(false)
		if over {
			return
		}
	}
}

// driveOnce has the turn to receive, drives the engine for a moment, and gives it back.
func (s *Scheduler[W]) driveOnce(u *until) {
	defer s.receiving.give()
	if !u.met() { // which select may have overlooked
		s.progress(atATime) // who waits hears of an error, as all do whose work it ends
	}
}

// until is what ends a wait.
type until struct {
	ready            func() bool
	done, over, gone <-chan struct{}
	ended            bool // one of these said so, perhaps with its only token
}

// met reports whether the wait is over. It is asked after every batch of datagrams:
// while they keep coming, nothing else would look.
func (u *until) met() bool {
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

// Sleep is Await of an engine that others drive.
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
