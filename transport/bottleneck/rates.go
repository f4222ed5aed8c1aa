package bottleneck

import (
	"math"
	"time"
)

// Change is a time from which on the rate is another one.
type Change struct {
	At   time.Duration
	Rate int64 // bits per second; 0 stands still, and what waits stays
}

// Outage is a time in which all is lost that comes. What waits goes on.
type Outage struct {
	From, For time.Duration
}

// rates is the rate over time.
type rates struct {
	rate    int64
	changes []Change // those to come
}

func newRates(rate int64, changes []Change) rates { return rates{rate, changes} }

// end returns when that many bits are out which begin at a time, or false for never. Begins do
// not go back.
func (r *rates) end(begin time.Duration, bits float64) (time.Duration, bool) {
	for len(r.changes) > 0 && r.changes[0].At <= begin {
		r.rate, r.changes = r.changes[0].Rate, r.changes[1:]
	}
	rate := float64(r.rate)
	for _, c := range r.changes {
		room := rate * (c.At - begin).Seconds()
		if bits <= room {
			break
		}
		bits -= room
		begin, rate = c.At, float64(c.Rate)
	}
	if rate == 0 {
		return 0, false
	}
	return begin + time.Duration(math.Ceil(bits/rate*float64(time.Second))), true
}
