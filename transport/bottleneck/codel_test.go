package bottleneck_test

import (
	"math"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// newCoDel is a queue of 8 Mbit/s, at which 1000 bytes take 1 ms.
func newCoDel(t *testing.T) *bench {
	return newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 10_000_000, CoDel: &bottleneck.CoDel{}})
}

// TestCoDelLeavesBurstsAlone checks that a queue that is long, and empty again within an
// interval, loses nothing (RFC 8289, 3.1 and 4.3).
func TestCoDelLeavesBurstsAlone(t *testing.T) {
	b := newCoDel(t)
	for i := range 20 {
		for range 90 {
			b.enter(time.Duration(i)*200*ms, 1000, false)
		}
	}
	b.runUntil(time.Minute)
	if len(b.drops) != 0 {
		t.Errorf("dropped %v", b.drops)
	}
	if d := b.flow.Delay(1); d < 88*ms || d > 90*ms {
		t.Errorf("delay of the last %v", d)
	}
}

// TestCoDelBelowTarget checks that a standing queue below the target stays (RFC 8289, 4.2).
func TestCoDelBelowTarget(t *testing.T) {
	b := newCoDel(t)
	for range 4 {
		b.enter(0, 1000, false)
	}
	b.flood(ms, 10*time.Second, ms, 1000, false)
	if len(b.drops) != 0 {
		t.Errorf("dropped %v", b.drops)
	}
	if d := b.flow.Delay(0.5); d < 3*ms || d >= 5*ms {
		t.Errorf("delay %v", d)
	}
}

// TestCoDelAtLeastOneFrame checks that a queue of one largest frame stays, whatever its
// delay: there is nothing to send instead (RFC 8289, 5.5, MAXPACKET).
func TestCoDelAtLeastOneFrame(t *testing.T) {
	b := newCoDel(t)
	b.enter(0, 10_000, false)
	b.flood(0, 10*time.Second, 10*ms, 10_000, false) // each waits for 10 ms, twice the target
	if len(b.drops) != 0 || b.flow.Delay(0.5) < 9*ms {
		t.Errorf("dropped %v, delay %v", b.drops, b.flow.Delay(0.5))
	}
}

// TestCoDelControlLaw checks when frames are dropped of a queue that stands: first after an interval
// above the target, then after interval / sqrt(count) each (RFC 8289, 5.5 and 5.6).
func TestCoDelControlLaw(t *testing.T) {
	var at []time.Duration
	b := &bench{t: t}
	now := time.Duration(0)
	b.q = bottleneck.New(bottleneck.Config{Rate: 8_000_000, Queue: 10_000_000, CoDel: &bottleneck.CoDel{}}, func(int, bottleneck.Reason) { at = append(at, now) })
	b.flow = b.q.NewFlow()
	for range 100 {
		b.enter(0, 1000, false)
	}
	for now = ms; now < time.Second; now += ms { // something leaves and comes each millisecond
		b.enter(now, 1000, false)
		b.enter(now, 200, false) // and more than leaves
	}
	// The first that waited 5 ms begins at 5 ms.
	want := []time.Duration{105 * ms}
	next := want[0]
	for count := 1; next < 900*ms; count++ {
		next += time.Duration(float64(100*ms) / math.Sqrt(float64(count)))
		want = append(want, next)
	}
	if len(at) < len(want) {
		t.Fatalf("dropped at %v, want %v", at, want)
	}
	for i, w := range want {
		if d := at[i] - w; d < 0 || d > 3*ms { // with the next frame that begins, of times since the first was dropped so
			t.Errorf("drop %d at %v, want %v", i, at[i], w)
		}
	}
}

// TestCoDelHoldsTheTarget checks that a source that answers to drops has a queue of about the
// target, where drop-tail would have 100 ms (RFC 8289, 4.2).
func TestCoDelHoldsTheTarget(t *testing.T) {
	run := func(codel *bottleneck.CoDel) (*bench, float64) {
		b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 100_000, CoDel: codel})
		rate, seen := 500., 0 // frames per second
		for at := time.Duration(0); at < 60*time.Second; at += time.Duration(float64(time.Second) / rate) {
			b.enter(at, 1000, false)
			rate += 1
			if len(b.drops) > seen {
				seen = len(b.drops)
				rate *= 0.7
			}
		}
		return b, float64(b.flow.Counts().LeftBytes) * 8 / 60
	}
	b, rate := run(&bottleneck.CoDel{})
	if d := b.flow.Delay(0.5); d > 25*ms || rate < 0.8*8e6 {
		t.Errorf("CoDel: delay %v at %.0f bit/s", d, rate)
	}
	b, _ = run(nil)
	if d := b.flow.Delay(0.95); d < 80*ms {
		t.Errorf("drop-tail: delay %v", d)
	}
}

// TestCoDelGoesOnWhereItWas checks that a dropping state soon after another begins with the rate of
// drops that controlled the queue, and a later one with one drop per interval (RFC 8289, 5.5).
func TestCoDelGoesOnWhereItWas(t *testing.T) {
	firstGap := func(pause time.Duration) time.Duration {
		var at []time.Duration
		b := &bench{t: t}
		b.q = bottleneck.New(bottleneck.Config{Rate: 8_000_000, Queue: 10_000_000, CoDel: &bottleneck.CoDel{}}, func(int, bottleneck.Reason) { at = append(at, b.now) })
		b.flow = b.q.NewFlow()
		b.flood(0, 2*time.Second, 900*time.Microsecond, 1000, false)
		for b.q.Bytes() > 0 {
			b.runUntil(b.now + ms)
		}
		first := len(at)
		b.flood(b.now+pause, b.now+pause+time.Second, 500*time.Microsecond, 1000, false)
		if first < 5 || len(at) < first+2 {
			t.Fatalf("%d drops, then %d", first, len(at)-first)
		}
		return at[first+1] - at[first]
	}
	if soon, late := firstGap(10*ms), firstGap(10*time.Second); soon > 50*ms || late < 98*ms || late > 102*ms {
		t.Errorf("second drop after %v in a state that follows soon, %v in a late one", soon, late)
	}
}

// TestCoDelMarks checks that frames that can carry a mark are marked where others are dropped, as
// often at first, and none is lost (RFC 8289, 3.3).
func TestCoDelMarks(t *testing.T) {
	run := func(capable bool) *bench {
		b := newCoDel(t)
		for range 100 {
			b.enter(0, 1000, capable)
		}
		b.flood(ms, time.Second, ms, 1000, capable)
		b.runUntil(time.Second)
		return b
	}
	dropping, marking := run(false), run(true)
	c := marking.flow.Counts()
	if c.Dropped != 0 || c.Marked < 10 || len(dropping.drops) < 10 {
		t.Fatalf("marked %+v, dropped %d", c, len(dropping.drops))
	}
	first := -1
	for _, l := range marking.left {
		if l.Marked {
			first = l.What
			break
		}
	}
	if first != dropping.drops[0].what || dropping.drops[0].why != bottleneck.Control {
		t.Errorf("frame %d was marked first, %v dropped", first, dropping.drops[0])
	}
}

// TestCoDelOfOtherTimes checks that target and interval may be others.
func TestCoDelOfOtherTimes(t *testing.T) {
	var first time.Duration
	b := &bench{t: t}
	b.q = bottleneck.New(bottleneck.Config{Rate: 8_000_000, Queue: 10_000_000, CoDel: &bottleneck.CoDel{Target: 20 * ms, Interval: 300 * ms}}, func(int, bottleneck.Reason) {
		if first == 0 {
			first = b.now
		}
	})
	b.flow = b.q.NewFlow()
	b.flood(0, time.Second, ms/2, 1000, false) // the delay grows by half of what passes, from 0
	if first < 338*ms || first > 342*ms {
		t.Errorf("first drop at %v, want at 40 ms and the interval", first)
	}
}
