package worlds

import (
	"fmt"
	"math"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// DrawLink draws a link from one node of a kind to another.
func DrawLink(d Dice, k Kind, from, to int) simnet.Link {
	l := simnet.Link{Latency: d.Span(2*time.Microsecond, 10*time.Millisecond)}
	if d.Chance(0.1) {
		l.Latency = d.Span(10*time.Millisecond, 100*time.Millisecond)
	}
	l.Latency += time.Duration(17*from + 101*to) // no two directions act at the same instant
	may := k.Faults(from)
	if d.Chance(0.5) {
		l.Jitter = d.Span(time.Microsecond, 2*l.Latency)
	}
	if may.Loss && d.Chance(0.7) {
		l.Loss = 0.4 * math.Pow(d.Float64(), 2)
		if d.Chance(0.15) {
			l.Loss = 0.4
		}
		if d.Chance(0.3) {
			l.Burst = d.Between(2, 20)
		}
	}
	if may.Loss && d.Chance(0.1) {
		l.Corrupt, l.DropCorrupt = 0.2*d.Float64(), true
	}
	if may.Duplicate && d.Chance(0.4) {
		l.Duplicate = d.Float64() * d.Float64()
	}
	if may.Reorder && d.Chance(0.5) {
		l.Reorder = d.Float64() * d.Float64()
		l.ReorderBy = d.Span(l.Latency/10+1, 3*l.Latency+time.Millisecond)
		if !k.Native() {
			l.ReorderBy = min(l.ReorderBy, 20*time.Millisecond)
		}
	}
	if may.Hold && d.Chance(0.4) {
		l.HoldBack = 0.5 * d.Float64() * d.Float64()
		l.HoldFor = d.Span(time.Millisecond, 10*time.Second)
	}
	if may.Loss && d.Chance(0.2) {
		l.Rate = int64(d.Span(1e6, 10e9))
		l.Queue = d.Pick(0, 3, 10, 50, 200)
	}
	return l
}

// Settle returns for how long frames may be on their way over a link at most.
func Settle(l simnet.Link) time.Duration { return max(l.HoldFor, 4*(l.Latency+l.Jitter+l.ReorderBy)) }

// Describe says what a link is like.
func Describe(l simnet.Link) string {
	if l.Down {
		return "down"
	}
	s := fmt.Sprintf("latency %v jitter %v", l.Latency, l.Jitter)
	if l.Rate > 0 {
		s += fmt.Sprintf(" rate %d queue %d", l.Rate, l.Queue)
	}
	for _, x := range []struct {
		name string
		p    float64
		d    any
	}{
		{"loss", l.Loss, l.Burst}, {"duplicate", l.Duplicate, ""}, {"reorder", l.Reorder, l.ReorderBy},
		{"corrupt", l.Corrupt, ""}, {"hold", l.HoldBack, l.HoldFor},
	} {
		if x.p > 0 {
			s += fmt.Sprintf(" %s %.3f %v", x.name, x.p, x.d)
		}
	}
	return s
}
