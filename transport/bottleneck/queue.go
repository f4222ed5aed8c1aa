package bottleneck

import (
	"fmt"
	"time"
)

// Config describes a bottleneck.
type Config struct {
	// Rate is in bits per second, until the first of the Changes; 0 stands still.
	Rate int64
	// Changes set the rate at later times. They are in order of their times.
	Changes []Change
	// Outages lose what comes while they last. They may overlap.
	Outages []Outage

	// Queue is how many bytes may wait, without the frame in transmission.
	Queue int
	// Overhead is what a frame takes on the wire beyond its bytes, which counts for all purposes.
	Overhead int

	// CoDel controls the queue, unless it is nil.
	CoDel *CoDel
	// MarkAbove marks frames that find more bytes waiting, if they can carry a mark; 0 marks
	// none. This is the step threshold of DCTCP (RFC 8257, 3.1).
	MarkAbove int
}

// Reason says why a frame was dropped.
type Reason int

// Reasons.
const (
	Full    Reason = iota // no room in the queue
	Control               // CoDel's decision
	Down                  // it came during an outage
)

// Left is a frame that has left.
type Left[T any] struct {
	What   T
	At     time.Duration // when its last bit was out
	Marked bool
}

// Queue is a bottleneck. T is what its owner knows of a frame.
type Queue[T any] struct {
	cfg   Config
	drop  func(T, Reason)
	rates rates
	codel codelState

	waiting []waiter[T] // first in, first out; from head on
	head    int
	bytes   int // of those that wait
	largest int // frame so far: CoDel leaves that much alone

	busy  bool // sending is under way until over, or for ever
	ends  bool
	over  time.Duration
	sends waiter[T]

	all *Flow
}

type waiter[T any] struct {
	what    T
	flow    *Flow
	size    int
	came    time.Duration
	capable bool // of carrying a mark
	marked  bool
}

// New returns a bottleneck without frames. It calls drop for each frame that
// it drops, within Enter or Leave.
func New[T any](cfg Config, drop func(T, Reason)) *Queue[T] {
	cfg.mustBeValid()
	return &Queue[T]{cfg: cfg, drop: drop, rates: newRates(cfg.Rate, cfg.Changes), codel: newCoDelState(cfg.CoDel), all: newFlow()}
}

func (cfg *Config) mustBeValid() {
	if cfg.Rate < 0 || cfg.Queue < 0 || cfg.Overhead < 0 || cfg.MarkAbove < 0 {
		panic("BUG: bottleneck: negative Rate, Queue, Overhead or MarkAbove")
	}
	last := time.Duration(0)
	for _, c := range cfg.Changes {
		if c.Rate < 0 || c.At < last {
			panic(fmt.Sprintf("BUG: bottleneck: change of the rate to %d at %v is negative or out of order", c.Rate, c.At))
		}
		last = c.At
	}
	for _, o := range cfg.Outages {
		if o.From < 0 || o.For < 0 {
			panic(fmt.Sprintf("BUG: bottleneck: outage from %v for %v", o.From, o.For))
		}
	}
	if c := cfg.CoDel; c != nil && (c.Target < 0 || c.Interval < 0) {
		panic("BUG: bottleneck: negative time of CoDel")
	}
}

// NewFlow returns counters for a part of what enters.
func (q *Queue[T]) NewFlow() *Flow { return newFlow() }

// All returns the counters of everything that entered.
func (q *Queue[T]) All() *Flow { return q.all }

// Bytes returns how many bytes wait.
func (q *Queue[T]) Bytes() int { return q.bytes }

// Enter has a frame wait, or drops it. capable says that it can carry a mark.
func (q *Queue[T]) Enter(now time.Duration, f *Flow, size int, capable bool, what T) {
	size += q.cfg.Overhead
	f.in(size)
	q.all.in(size)
	switch {
	case q.isDown(now):
		q.lose(f, size, what, Down)
		return
	case q.busy && q.bytes+size > q.cfg.Queue:
		q.lose(f, size, what, Full)
		return
	}
	marked := capable && q.cfg.MarkAbove > 0 && q.bytes > q.cfg.MarkAbove
	q.waiting = append(q.waiting, waiter[T]{what, f, size, now, capable, marked})
	q.bytes += size
	q.largest = max(q.largest, size)
	if !q.busy {
		q.begin(now)
	}
}

// Due returns when the frame in transmission leaves; false if there is none, or
// the rate stands still for ever.
func (q *Queue[T]) Due() (time.Duration, bool) { return q.over, q.busy && q.ends }

// Leave takes the frame out that is due, and begins with the next at the time when
// that left. One must be due.
func (q *Queue[T]) Leave() Left[T] {
	if !q.busy || !q.ends {
		panic("BUG: bottleneck: nothing is due")
	}
	w := q.sends
	q.busy, q.sends = false, waiter[T]{}
	w.flow.left(w.size, w.marked)
	q.all.left(w.size, w.marked)
	at := q.over
	q.begin(at)
	return Left[T]{w.what, at, w.marked}
}

// Clear takes everything out that is in the queue, without counting it as dropped.
func (q *Queue[T]) Clear(each func(T)) {
	if q.busy {
		each(q.sends.what)
	}
	for _, w := range q.waiting[q.head:] {
		each(w.what)
	}
	q.waiting, q.head, q.bytes, q.busy, q.sends = nil, 0, 0, false, waiter[T]{}
}

// begin starts to transmit what waits longest, and what CoDel lets through.
func (q *Queue[T]) begin(now time.Duration) {
	w, ok := q.dequeue(now)
	if !ok {
		return
	}
	delay := now - w.came
	w.flow.waited(delay)
	q.all.waited(delay)
	q.busy, q.sends = true, w
	q.over, q.ends = q.rates.end(now, float64(w.size)*8)
}

// pop removes the oldest that waits.
func (q *Queue[T]) pop() (waiter[T], bool) {
	if q.head == len(q.waiting) {
		return waiter[T]{}, false
	}
	w := q.waiting[q.head]
	q.waiting[q.head] = waiter[T]{}
	q.bytes -= w.size
	if q.head++; q.head == len(q.waiting) {
		q.waiting, q.head = q.waiting[:0], 0
	} else if q.head > len(q.waiting)/2 {
		n := copy(q.waiting, q.waiting[q.head:])
		clear(q.waiting[n:])
		q.waiting, q.head = q.waiting[:n], 0
	}
	return w, true
}

func (q *Queue[T]) lose(f *Flow, size int, what T, why Reason) {
	f.dropped(size, why)
	q.all.dropped(size, why)
	q.drop(what, why)
}

func (q *Queue[T]) isDown(now time.Duration) bool {
	for _, o := range q.cfg.Outages {
		if now >= o.From && now-o.From < o.For {
			return true
		}
	}
	return false
}
