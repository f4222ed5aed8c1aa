package sched

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// turn is the right to receive. Unlike a mutex it can be waited for beside other
// things: who has taken the token from free has the turn.
type turn struct{ free chan struct{} }

func (t *turn) init() {
	t.free = make(chan struct{}, 1)
	t.give()
}

func (t *turn) take() { <-t.free }
func (t *turn) give() { t.free <- struct{}{} }

func (t *turn) tryTake() bool {
	select {
	case <-t.free:
		return true
	default:
		return false
	}
}

// claimFor is how long the goroutine that receives waits for the turn to send: the transport may hold up the one that has
// it, and what comes must be heard all the same. Arbitrary: long compared with a batch, short for a person.
const claimFor = 2 * time.Millisecond

// sendTurn is the right to send.
type sendTurn struct {
	mu      sync.Mutex
	claimed atomic.Bool   // the goroutine that receives waits for it
	given   chan struct{} // one token: it was given back while it was claimed
	timer   *time.Timer   // of the goroutine that has the turn to receive
}

func (t *sendTurn) init() {
	t.given = make(chan struct{}, 1)
	t.timer = time.NewTimer(claimFor)
	t.timer.Stop()
}

func (t *sendTurn) give() {
	t.mu.Unlock()
	if t.claimed.Load() {
		patience.Leave(t.given)
	}
}

// tryTake leaves the turn to the goroutine that claims it.
func (t *sendTurn) tryTake() bool { return !t.claimed.Load() && t.mu.TryLock() }

// taken reports whether another goroutine has the turn. If not, the caller serves what is pending: another goroutine
// that would do so may have found the turn taken by the question.
func (t *sendTurn) taken() bool {
	if !t.mu.TryLock() {
		return true
	}
	t.mu.Unlock()
	return false
}

// claim has the goroutine that sends give the turn back after the item at hand, and takes it. It reports whether that was so in
// time. The caller has the turn to receive.
func (t *sendTurn) claim() bool {
	if t.mu.TryLock() {
		return true
	}
	t.claimed.Store(true)
	defer t.claimed.Store(false)
	t.timer.Reset(claimFor)
	defer t.timer.Stop()
	for !t.mu.TryLock() { // also at first: it may have been given back before it was claimed
		select {
		case <-t.given:
		case <-t.timer.C:
			return t.mu.TryLock()
		}
	}
	return true
}

// Entry is what an item, something with work and a deadline, has in the lists of a
// scheduler.
type Entry[W any] struct {
	item   W
	queued atomic.Bool
	due    atomic.Int64 // when attention is needed; an ack.Instant, or 0
	listed atomic.Int64 // when the alarm looks at it next, or 0; written under the alarm's lock
	place  int          // in the alarm's heap; guarded by its lock
}

// Init prepares the entry of an item.
func (e *Entry[W]) Init(item W) { e.item = item }

// Queued reports whether the item is in the list of those with work. Who serves it says no
// before.
func (e *Entry[W]) Queued() bool { return e.queued.Load() }

// worklist holds the items with work, each once. The lock is a leaf.
type worklist[W any] struct {
	mu      sync.Mutex
	waiting []*Entry[W]
	serving []*Entry[W] // of who has the turn to send
}

func (l *worklist[W]) add(w *Entry[W]) {
	if w.queued.CompareAndSwap(false, true) {
		l.mu.Lock()
		l.waiting = append(l.waiting, w)
		l.mu.Unlock()
	}
}

// take returns all items, which the caller has until drop.
func (l *worklist[W]) take() []*Entry[W] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.serving = l.serving[:0], l.waiting
	return l.serving
}

// putBack returns items that were not served, and that are still marked as queued.
func (l *worklist[W]) putBack(left []*Entry[W]) {
	l.mu.Lock()
	l.waiting = append(l.waiting, left...)
	l.mu.Unlock()
}

// drop forgets what take returned: what was closed must not live on here.
func (l *worklist[W]) drop() { clear(l.serving) }

// barrier holds what waits for the end of the batch that is being applied. The lock is
// a leaf.
type barrier struct {
	waits atomic.Bool // list may not be empty
	mu    sync.Mutex
	list  []*func()
}

func (b *barrier) add(f func()) *func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, &f)
	b.waits.Store(true)
	return &f
}

// remove reports whether f was still there.
func (b *barrier) remove(f *func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, g := range b.list {
		if g == f {
			b.list = slices.Delete(b.list, i, i+1) // and forgets it
			return true
		}
	}
	return false
}

// run is called between batches, by who has the turn to receive.
func (b *barrier) run() {
	if !b.waits.Load() {
		return
	}
	b.mu.Lock()
	list := b.list
	b.list = nil
	b.waits.Store(false)
	b.mu.Unlock()
	runAll(list)
}

// runAll runs them in order, each even if the one before it does not return.
func runAll(list []*func()) {
	if len(list) > 0 {
		defer runAll(list[1:])
		(*list[0])()
	}
}
