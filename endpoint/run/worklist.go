package run

import (
	"sync"
	"sync/atomic"
)

// Entry is the place of an item in the lists of a scheduler. An item has work and a
// deadline.
type Entry[W any] struct {
	item   W
	queued atomic.Bool
	due    atomic.Int64 // when attention is needed; an ack.Instant, or 0
	listed atomic.Int64 // when the alarm looks at it next, or 0; written under the alarm's lock
	place  int          // in the alarm's heap; guarded by its lock
}

// Init prepares the entry of an item.
func (e *Entry[W]) Init(item W) { e.item = item }

// IsQueued reports whether the item is in the list of those with work. It is not while
// it is being served.
func (e *Entry[W]) IsQueued() bool { return e.queued.Load() }

// worklist holds the items with work, each once. The lock is a leaf.
type worklist[W any] struct {
	mu      sync.Mutex
	waiting []*Entry[W]
	serving []*Entry[W] // guarded by the send lock
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
