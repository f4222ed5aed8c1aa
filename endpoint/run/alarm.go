package run

import (
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
		a.items.add(w, at)
	} else {
		a.items.move(w, at)
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
		a.items.remove(w)
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
	return ack.Instant(a.items[0].at)
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
		w := a.items[0].w
		a.items.remove(w)
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

// byTime is a heap of items by when they are listed, with the times beside each other: one that looked into each item on its way would
// miss the cache at each step, with thousands of them.
type byTime[W any] []listing[W]

// listing is an item in the heap.
type listing[W any] struct {
	at int64 // as in Entry.listed
	w  *Entry[W]
}

// add puts an item in.
func (h *byTime[W]) add(w *Entry[W], at int64) {
	*h = append(*h, listing[W]{})
	h.up(len(*h)-1, listing[W]{at, w})
}

// move puts an item that is in where it belongs at another time.
func (h byTime[W]) move(w *Entry[W], at int64) {
	if x := (listing[W]{at, w}); at < h[w.place].at {
		h.up(w.place, x)
	} else {
		h.down(w.place, x)
	}
}

// remove takes an item out.
func (h *byTime[W]) remove(w *Entry[W]) {
	last := len(*h) - 1
	x := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	if x.w != w {
		x.w.place = w.place // in the place of the item that goes
		(*h)[w.place].w = x.w
		h.move(x.w, x.at)
	}
}

// up fills place i, or one above it, with x, which is not later than what is below i.
func (h byTime[W]) up(i int, x listing[W]) {
	for i > 0 {
		above := (i - 1) / 2
		if h[above].at <= x.at {
			break
		}
		h.set(i, h[above])
		i = above
	}
	h.set(i, x)
}

// down fills place i, or one below it, with x, which is not earlier than what is above i.
func (h byTime[W]) down(i int, x listing[W]) {
	for {
		below := 2*i + 1
		if below >= len(h) {
			break
		}
		if other := below + 1; other < len(h) && h[other].at < h[below].at {
			below = other
		}
		if x.at <= h[below].at {
			break
		}
		h.set(i, h[below])
		i = below
	}
	h.set(i, x)
}

func (h byTime[W]) set(i int, x listing[W]) {
	h[i] = x
	x.w.place = i
}
