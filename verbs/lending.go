package verbs

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

const (
	// idleTurn is how often the receiving goroutine looks whether something has come, and takes its turn back if not: for
	// up to twice as long a request of the peer may wait behind a helper that left. Arbitrary: some round trips of a local
	// network, and long beside what a timer costs.
	idleTurn = 500 * time.Microsecond
	// longAbsence of a helper is when it would be better if another goroutine received meanwhile: in that time
	// half a megabyte comes. Arbitrary.
	longAbsence = 200 * time.Microsecond
)

// lending is how the receiving goroutine of a queue pair lends its turn to a goroutine that waits for a
// completion, the helper. It would sleep otherwise, and be woken by the receiving goroutine on another processor, which takes
// longer than a message does. A helper that comes again soon finds the turn where it left it. With several who
// wait the turn goes back: each would receive for the others.
type lending struct {
	free    chan struct{} // one token: the turn to receive, which the receiving goroutine has at first
	offered chan struct{} // one token: who waits and has not got it may try again
	back    chan struct{} // one token: the receiving goroutine is to take it back now
	waiters atomic.Int32  // goroutines that wait for completions
	asked   atomic.Bool   // one of them would help
	wanted  atomic.Bool   // the receiving goroutine waits for the turn
	worth   patience.Handover
	taken   atomic.Uint64 // how often helpers took something in

	// Guarded by the queue pair's mutex.
	reading bool // a helper waits for bytes

	// Of who has the turn.
	left time.Time // when the last helper left; zero: nobody did since it was lent
	idle *time.Timer
}

func (l *lending) init() {
	l.free, l.offered, l.back = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	l.worth.Init()
}

// judge is told after what absence a helper came back. The caller has the turn.
func (l *lending) judge(absence time.Duration) { l.worth.Record(absence, longAbsence) }

// borrow takes the turn, if help is welcome.
func (q *QueuePair) borrow() bool {
	l := &q.lending
	switch {
	// Who waits for a queue of several cannot receive for all of them, and is not counted.
	case q.conn.Blocks() || q.sent.shared.Load() || q.received.shared.Load():
		return false
	case l.waiters.Load() > 1:
		patience.Leave(l.back)
		return false
	case !l.worth.MayPoll():
		patience.Leave(l.back)
		return false
	}
	select {
	case <-l.free:
		return true
	default:
		l.asked.Store(true)
		return false
	}
}

// help receives until met says that what is waited for is there, or until help is not welcome.
func (q *QueuePair) help(ctx context.Context, met func() bool) {
	l := &q.lending
	if !q.borrow() {
		return
	}
	if !l.left.IsZero() {
		l.judge(time.Since(l.left))
	}
	there := false
	for !there && !l.wanted.Load() && l.waiters.Load() == 1 && ctx.Err() == nil {
		q.read(true)
		// Who completes something, or wants the turn, finds from here on that a helper reads, or was before it.
		if there = met(); there || l.wanted.Load() {
			break
		}
		err := q.after(q.conn.Watch(receiver{driver{q}}))
		if errors.Is(err, mpa.ErrInterrupted) {
			there = met()
			continue
		}
		if err != nil {
			break // the receiving goroutine meets it again
		}
		l.taken.Add(1)
		there = met()
	}
	q.read(false)
	l.left = time.Now()
	stays := there && l.waiters.Load() == 1
	l.free <- struct{}{}
	if !stays {
		patience.Leave(l.back)
	}
}

// read notes whether a helper waits for bytes.
func (q *QueuePair) read(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lending.reading = on
}

// rouse has a helper that waits for bytes look at what it waits for. The caller has the lock.
func (q *QueuePair) rouse() {
	if q.lending.reading {
		q.lending.reading = false
		q.conn.Interrupt()
	}
}

// lend lends the turn, which the receiving goroutine has, until it lies idle.
func (q *QueuePair) lend() {
	l := &q.lending
	select {
	case <-l.back: // of an earlier loan
	default:
	}
	l.asked.Store(false)
	l.left = time.Time{}
	if l.idle == nil {
		l.idle = time.NewTimer(idleTurn)
	}
	taken, idle := l.taken.Load(), false
	l.free <- struct{}{}
	patience.Leave(l.offered)
	for lent := true; lent; {
		l.idle.Reset(idleTurn)
		select {
		case <-l.back:
			lent = false
		case <-l.idle.C:
			now := l.taken.Load()
			lent, taken = now != taken, now
			idle = !lent
		}
	}
	l.wanted.Store(true)
	q.mu.Lock()
	q.rouse()
	q.mu.Unlock()
	<-l.free
	l.wanted.Store(false)
	if idle {
		l.judge(idleTurn)
	}
}
