package main

import (
	"time"

	"github.com/dgrdma/dgrdma/bench"
)

const (
	// pingWarmUp is how many pings go unmeasured before those that are measured, at most.
	pingWarmUp = 1000
	// pingWait is how long an answer is waited for at least, and while none was
	// measured, unless --wait says otherwise: as RFC 6298 has it for acknowledgements
	// (2.1, 2.4). The endpoints send lost frames again within it.
	pingWait = time.Second
	// bothWays are the legs of a round trip: one way is half of it.
	bothWays = 2
	// mostLate is how many late answers are recognized. Arbitrary: with --wait 10ms, those of the last 10 seconds.
	mostLate = 1024
)

// rounds is what a client knows of its pings. It is told the time.
type rounds struct {
	wait     time.Duration // how long an answer is waited for at least
	interval time.Duration // between pings; 0: the next one follows the answer
	nextAt   time.Time     // when the next one is due
	warmUp   uint32        // number of the last ping that is not measured; the first is 1
	last     uint32        // number of the last one
	number   uint32        // of the latest one
	waiting  bool          // for its answer
	sentAt   time.Time
	lostAt   time.Time     // when its answer counts as lost
	heardAt  time.Time     // when an answer last came, or the first ping since was sent
	late     []overdue     // sent since an answer came in time, and given up
	silent   bool          // a ping was lost since an answer came
	smoothed time.Duration // round trips, and how they vary; 0: none was measured
	varies   time.Duration
	latest   time.Duration // what the last round trip counts
	legs     time.Duration // how many of those that count are in a round trip
	answered uint32
	lost     uint32
	times    *bench.Histogram // what each round trip counts
}

// overdue is a ping whose answer may yet come.
type overdue struct {
	number uint32
	sentAt time.Time
}

func newRounds(n int, wait, interval time.Duration) *rounds {
	warmUp := uint32(min(n, pingWarmUp))
	if interval > 0 {
		warmUp = 1 // more would take long, and what waits in between is not warm
	}
	return &rounds{wait: wait, interval: interval, warmUp: warmUp, last: warmUp + uint32(n), times: bench.NewHistogram(), legs: bothWays}
}

// next begins the next ping, if it is due.
func (r *rounds) next(now time.Time) (number uint32, ok bool) {
	if r.number == r.last || now.Before(r.nextAt) {
		return 0, false
	}
	if !r.silent { // what is not heard after an answer is not yet silence
		r.heardAt = now
	}
	if r.number++; r.number > r.warmUp {
		r.schedule(now)
	}
	r.waiting = true
	r.sent(r.number, now)
	return r.number, true
}

// schedule notes when the ping after one that begins now is due: an interval after this one
// was, so that what is late does not add up, but no more than one of them is made up for.
func (r *rounds) schedule(now time.Time) {
	if now.Sub(r.nextAt) > r.interval {
		r.nextAt = now
	}
	r.nextAt = r.nextAt.Add(r.interval)
}

// dueIn returns how long it is until the next ping may begin, if it waits for nothing else.
func (r *rounds) dueIn(now time.Time) (wait time.Duration, waits bool) {
	return r.nextAt.Sub(now), r.interval > 0 && !r.waiting && r.number < r.last
}

// sent notes that a ping left only now.
func (r *rounds) sent(number uint32, now time.Time) {
	if number == r.number {
		r.sentAt, r.lostAt = now, now.Add(r.patience())
	}
}

// measured returns of how many the time was taken.
func (r *rounds) measured() int { return int(r.times.N()) }

// patience is how long an answer is waited for: the timeout of RFC 6298, but it does not double after a loss. Nothing is sent again, so a
// ping each second loads the network no more when answers are lost.
func (r *rounds) patience() time.Duration {
	if r.smoothed == 0 {
		return r.wait
	}
	return max(r.wait, r.smoothed+4*r.varies)
}

// answer takes an answer and reports whether it is the one that is waited for.
func (r *rounds) answer(number uint32, now time.Time) bool {
	if r.waiting && number == r.number {
		r.heardAt, r.waiting, r.late = now, false, r.late[:0]
		took := now.Sub(r.sentAt)
		r.measure(took)
		r.latest = took / r.legs
		r.answered++
		if number > r.warmUp {
			r.times.Add(r.latest)
		}
		return true
	}
	for i, p := range r.late {
		if p.number == number {
			// It is lost all the same, but others like it need not be.
			r.heardAt = now
			r.measure(now.Sub(p.sentAt))
			r.late = append(r.late[:i], r.late[i+1:]...)
			break
		}
	}
	return false
}

// measure learns from a round trip (RFC 6298, 2.2 and 2.3).
func (r *rounds) measure(took time.Duration) {
	r.silent = false
	if r.smoothed == 0 {
		r.smoothed, r.varies = max(took, 1), took/2
		return
	}
	r.varies += ((r.smoothed - took).Abs() - r.varies) / 4
	r.smoothed = max(r.smoothed+(took-r.smoothed)/8, 1)
}

// expire gives up the ping that is waited for if it is time, and returns for how
// long it was waited.
func (r *rounds) expire(now time.Time) (waited time.Duration, lost bool) {
	if !r.waiting || now.Before(r.lostAt) {
		return 0, false
	}
	r.waiting = false
	r.lost++
	r.silent = true
	if len(r.late) == mostLate {
		r.late = append(r.late[:0], r.late[1:]...)
	}
	r.late = append(r.late, overdue{r.number, r.sentAt})
	return now.Sub(r.sentAt), true
}

// abandon gives up the ping that is waited for at once. It is lost only if it left, and then
// it was waited for so long.
func (r *rounds) abandon(left bool, now time.Time) (waited time.Duration, lost bool) {
	lost = r.waiting && left
	if r.waiting = false; !lost {
		return 0, false
	}
	r.lost++
	return now.Sub(r.sentAt), true
}

// postpone begins the wait for an answer only now.
func (r *rounds) postpone(now time.Time) { r.sent(r.number, now) }

// through reports whether every ping was answered or lost.
func (r *rounds) through() bool { return r.number == r.last && !r.waiting }

// silence is how long nothing was answered.
func (r *rounds) silence(now time.Time) time.Duration {
	if !r.waiting {
		return 0
	}
	return now.Sub(r.heardAt)
}
