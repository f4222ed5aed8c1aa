package bench

import "time"

// Moved is what a run has moved so far, or in part of its time.
type Moved struct {
	Bytes, Transactions uint64
	Resent              uint64 // frames of this side
}

func (m Moved) since(o Moved) Moved {
	return Moved{m.Bytes - o.Bytes, m.Transactions - o.Transactions, m.Resent - o.Resent}
}

// Interval is a part of a run.
type Interval struct {
	From, To time.Duration // since it began
	Moved
}

// intervals cut a run into pieces. They are told the time.
type intervals struct {
	every time.Duration // 0: one piece
	begun time.Duration // the piece
	until Moved         // then
	last  Moved
	moved time.Duration // when something last did
}

// at notes what was moved until now, and returns the piece that is over.
func (v *intervals) at(now time.Duration, m Moved) (i Interval, over bool) {
	if m.Transactions != v.last.Transactions {
		v.moved = now
	}
	v.last = m
	if v.every == 0 || now/v.every == v.begun/v.every {
		return i, false
	}
	return v.cut(now), true
}

// rest returns the piece after the last whole one, if it has any length to speak of.
func (v *intervals) rest(now time.Duration, m Moved) (i Interval, any bool) {
	if i, over := v.at(now, m); over {
		return i, true
	}
	if v.every == 0 || now-v.begun < v.every/10 {
		return i, false
	}
	return v.cut(now), true
}

func (v *intervals) cut(now time.Duration) Interval {
	i := Interval{v.begun, now, v.last.since(v.until)}
	v.begun, v.until = now, v.last
	return i
}

// sampleTick is how exact the time is at which something last moved.
const sampleTick = 100 * time.Millisecond

// Sample looks at what a run that began now has moved, and tells each of the intervals, if it
// is not nil. When it is stopped, which tells the last one, it says how long anything moved.
func Sample(every time.Duration, moved func() Moved, each func(Interval)) (stop func() time.Duration) {
	if each == nil {
		every, each = 0, func(Interval) {}
	}
	began := time.Now()
	v := intervals{every: every}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			wait := sampleTick
			if now := time.Since(began); every > 0 {
				wait = min(wait, every-now%every)
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
				if i, over := v.at(time.Since(began), moved()); over {
					each(i)
				}
			case <-quit:
				timer.Stop()
				return
			}
		}
	}()
	return func() time.Duration {
		close(quit)
		<-gone
		if i, any := v.rest(time.Since(began), moved()); any {
			each(i)
		}
		return v.moved
	}
}
