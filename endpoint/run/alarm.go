package run

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// alarm knows which item needs attention next. Most deadlines move on before they pass.
// A move to a later time costs nothing here: expire looks at the item at the earlier time,
// and lists it again. The lock is a leaf.
type alarm[W any] struct {
	mu    sync.Mutex
	items byTime[W]
	timer *time.Timer // at the time of the first item
	timed ack.Instant // when it fires, or Never
	due   []*Entry[W] // scratch of expire
}

// Never is a deadline that does not come.
const Never ack.Instant = math.MaxInt64

func (a *alarm[W]) init() {
	a.timer = time.NewTimer(time.Hour)
	a.timer.Stop()
	a.timed = Never
}

// Arm sets when an item needs attention next, in place of what was set before.
func (s *Scheduler[W]) Arm(w *Entry[W], now, at ack.Instant) {
	at = max(at, 1)
	// In this order: expire clears listed, then reads due.
	w.due.Store(int64(at))
	if at == Never {
		return
	}
	if listed := w.listed.Load(); listed == 0 || int64(at) < listed {
		s.list(w, now)
	}
}

// list puts an item where its deadline is now.
func (s *Scheduler[W]) list(w *Entry[W], now ack.Instant) {
	a := &s.alarm
	a.mu.Lock()
	defer a.mu.Unlock()
	at, listed := w.due.Load(), w.listed.Load()
	if at == int64(Never) {
		return
	}
	w.listed.Store(at)
	if listed == 0 {
		heap.Push(&a.items, w)
	} else {
		heap.Fix(&a.items, w.place)
	}
	a.set(s.own, now)
}

// Disarm takes an item out of the list: it will not be armed again.
func (s *Scheduler[W]) Disarm(w *Entry[W]) {
	a := &s.alarm
	w.due.Store(int64(Never))
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.listed.Load() != 0 {
		heap.Remove(&a.items, w.place)
		w.listed.Store(0)
	}
}

// set makes the timer fire no later than the first item is listed. Guarded by mu.
func (a *alarm[W]) set(own bool, now ack.Instant) {
	first := a.first()
	if first >= a.timed {
		return
	}
	a.timed = first
	if own {
		a.timer.Reset(first.Sub(now))
	}
}

func (a *alarm[W]) first() ack.Instant {
	if len(a.items) == 0 {
		return Never
	}
	return ack.Instant(a.items[0].listed.Load())
}

// next returns when expire is to be called next.
func (a *alarm[W]) next() ack.Instant {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first()
}

// expire has the engine act on all deadlines that passed. The send goroutine calls it, or
// the holder of the receive lock if there is none.
func (s *Scheduler[W]) expire() {
	a := &s.alarm
	now := s.engine.Now()
	a.mu.Lock()
	for a.first() <= now {
		w := heap.Pop(&a.items).(*Entry[W])
		w.listed.Store(0)
		a.due = append(a.due, w)
	}
	a.timed = Never
	a.set(s.own, now)
	a.mu.Unlock()
	whole := false
	defer s.breakUnless(&whole)
	for _, w := range a.due {
		if at := w.due.Load(); at > int64(now) {
			s.list(w, now)
			continue
		}
		s.engine.Expire(w.item, now)
	}
	clear(a.due)
	a.due = a.due[:0]
	whole = true
}

// byTime is a heap of items by when they are listed.
type byTime[W any] []*Entry[W]

func (h byTime[W]) Len() int { return len(h) }
func (h byTime[W]) Less(i, j int) bool {
	return h[i].listed.Load() < h[j].listed.Load()
}

func (h byTime[W]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements [heap.Interface].
func (h *byTime[W]) Push(x any) {
	w := x.(*Entry[W])
	w.place = len(*h)
	*h = append(*h, w)
}

// Pop implements [heap.Interface].
func (h *byTime[W]) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	return w
}
