package bottleneck

import (
	"math"
	"time"
)

// CoDel is controlled delay, RFC 8289.
type CoDel struct {
	Target   time.Duration // what the delay of a queue may be for long; 0: 5 ms (section 4.2)
	Interval time.Duration // which is how long; 0: 100 ms (section 4.3)
}

// Defaults of [CoDel], those of RFC 8289, section 5.3.
const (
	DefaultTarget   = 5 * time.Millisecond
	DefaultInterval = 100 * time.Millisecond
)

// resumes is within how many intervals after the last drop the next dropping state goes on
// where that ended (RFC 8289, section 5.5).
const resumes = 16

// codelState has the names of RFC 8289, section 5.2.
type codelState struct {
	on               bool
	target, interval time.Duration

	firstAboveTime time.Duration // when the delay has been above the target for an interval; 0: it is not above
	dropNext       time.Duration
	count          int // drops in this dropping state
	lastCount      int // count when the dropping state began
	dropping       bool
}

func newCoDelState(cfg *CoDel) codelState {
	if cfg == nil {
		return codelState{}
	}
	s := codelState{on: true, target: cfg.Target, interval: cfg.Interval}
	if s.target == 0 {
		s.target = DefaultTarget
	}
	if s.interval == 0 {
		s.interval = DefaultInterval
	}
	return s
}

// controlLaw is section 5.6 of RFC 8289: drops come closer as the square root of their number.
func (s *codelState) controlLaw(t time.Duration) time.Duration {
	return t + time.Duration(float64(s.interval)/math.Sqrt(float64(s.count)))
}

// examine is the second half of dodequeue, section 5.6: it reports whether the delay has been
// above the target for an interval. alone says that no more than one largest frame waits, which is no
// queue that could be shorter.
func (s *codelState) examine(now, delay time.Duration, alone bool) (okToDrop bool) {
	switch {
	case delay < s.target || alone:
		s.firstAboveTime = 0
	case s.firstAboveTime == 0:
		s.firstAboveTime = now + s.interval
	default:
		return now >= s.firstAboveTime
	}
	return false
}

// next takes the oldest that waits, as dodequeue does.
func (q *Queue[T]) next(now time.Duration) (w waiter[T], ok, okToDrop bool) {
	w, ok = q.pop()
	switch {
	case !ok:
		q.codel.firstAboveTime = 0
	case q.codel.on:
		okToDrop = q.codel.examine(now, now-w.came, q.bytes <= q.largest)
	}
	return w, ok, okToDrop
}

// dequeue is deque of RFC 8289, section 5.5, and marks in place of dropping what can carry a
// mark, as section 3.3 allows. One mark is enough at a time, since the frame goes on.
func (q *Queue[T]) dequeue(now time.Duration) (waiter[T], bool) {
	s := &q.codel
	w, ok, okToDrop := q.next(now)
	switch {
	case s.dropping && !okToDrop:
		s.dropping = false
	case s.dropping:
		for now >= s.dropNext && s.dropping {
			s.count++
			if w.capable {
				w.marked = true
				s.dropNext = s.controlLaw(s.dropNext)
				break
			}
			q.lose(w.flow, w.size, w.what, Control)
			if w, ok, okToDrop = q.next(now); !okToDrop {
				s.dropping = false
			} else {
				s.dropNext = s.controlLaw(s.dropNext)
			}
		}
	case okToDrop:
		if w.capable {
			w.marked = true
		} else {
			q.lose(w.flow, w.size, w.what, Control)
			w, ok, _ = q.next(now)
		}
		s.dropping = true
		delta := s.count - s.lastCount
		s.count = 1
		if delta > 1 && now-s.dropNext < resumes*s.interval {
			s.count = delta
		}
		s.dropNext = s.controlLaw(now)
		s.lastCount = s.count
	}
	return w, ok
}
