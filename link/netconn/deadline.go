package netconn

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// term is the context of calls that a deadline bounds: it is done, for good, when the deadline has
// passed. Calls share it, so none makes one of its own.
type term struct {
	over chan struct{}
	past atomic.Bool
}

func newTerm() *term { return &term{over: make(chan struct{})} }

// Deadline implements [context.Context]. A deadline can be moved, so it is not told.
func (t *term) Deadline() (at time.Time, ok bool) { return time.Time{}, false }

// Done implements [context.Context].
func (t *term) Done() <-chan struct{} { return t.over }

// Err implements [context.Context].
func (t *term) Err() error {
	if t.past.Load() {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Value implements [context.Context].
func (t *term) Value(any) any { return nil }

// deadline can be moved while calls wait for it. A deadline that is set after another one has passed
// begins a new term, for later calls.
type deadline struct {
	term atomic.Pointer[term]

	mu    sync.Mutex
	at    time.Time // zero: none
	timer *time.Timer
}

func (d *deadline) init() { d.term.Store(newTerm()) }

// set moves the deadline; the zero time removes it.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	now := time.Now()
	left := at.Sub(now)
	if !at.IsZero() && left <= 0 {
		d.pass()
		return
	}
	if d.term.Load().past.Load() {
		d.term.Store(newTerm())
	}
	if at.IsZero() {
		return
	}
	d.at = now.Add(left) // by the monotonic clock, like the timer, whatever clock the caller's time is of
	if d.timer == nil {
		d.timer = time.AfterFunc(left, d.fire)
	} else {
		d.timer.Reset(left)
	}
}

// stop removes the deadline and stops the timer. Guarded by mu.
func (d *deadline) stop() {
	d.at = time.Time{}
	if d.timer != nil {
		d.timer.Stop()
	}
}

// fire is called by the timer. It may be late, when deadline and timer have been moved.
func (d *deadline) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.at.IsZero() && !time.Now().Before(d.at) {
		d.pass()
	}
}

// pass ends the term. Guarded by mu.
func (d *deadline) pass() {
	if t := d.term.Load(); !t.past.Swap(true) {
		close(t.over)
	}
}
