package bottleneck_test

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// TestRateChanges checks that a frame whose transmission a change meets goes on at the other rate.
func TestRateChanges(t *testing.T) {
	b := newBench(t, bottleneck.Config{
		Rate: 8_000_000, Queue: 10_000, // 1000 bytes take 1 ms
		Changes: []bottleneck.Change{{At: 3 * ms / 2, Rate: 800_000}, {At: 20 * ms, Rate: 80_000_000}},
	})
	for range 4 {
		b.enter(0, 1000, false)
	}
	b.runUntil(time.Second)
	b.wantLeft(
		bottleneck.Left[int]{What: 0, At: ms},
		bottleneck.Left[int]{What: 1, At: 6*ms + ms/2},        // half of it at a tenth of the rate
		bottleneck.Left[int]{What: 2, At: 16*ms + ms/2},       // all of it
		bottleneck.Left[int]{What: 3, At: 20*ms + 65*ms/1000}, // 350 bytes, and 650 at ten times the rate
	)
}

// TestRateStandsStill checks that what waits stays, until there is a rate again, or for ever.
func TestRateStandsStill(t *testing.T) {
	b := newBench(t, bottleneck.Config{
		Rate: 8_000_000, Queue: 2000,
		Changes: []bottleneck.Change{{At: ms / 2, Rate: 0}, {At: 2 * time.Second, Rate: 8_000_000}, {At: 3 * time.Second, Rate: 0}},
	})
	for range 4 {
		b.enter(0, 1000, false)
	}
	b.runUntil(time.Second)
	b.wantLeft()
	b.runUntil(2*time.Second + 5*ms)
	b.wantLeft(
		bottleneck.Left[int]{What: 0, At: 2*time.Second + ms/2},
		bottleneck.Left[int]{What: 1, At: 2*time.Second + 3*ms/2},
		bottleneck.Left[int]{What: 2, At: 2*time.Second + 5*ms/2},
	)
	if len(b.drops) != 1 || b.drops[0].why != bottleneck.Full {
		t.Errorf("dropped %v, want the fourth", b.drops)
	}
	b.enter(4*time.Second, 1000, false)
	if at, ok := b.q.Due(); ok {
		t.Errorf("due at %v, though the rate stands still for ever", at)
	}
}

// TestOutage checks that all is lost that comes in an outage, and that what waits goes on.
func TestOutage(t *testing.T) {
	b := newBench(t, bottleneck.Config{
		Rate: 8_000_000, Queue: 10_000,
		Outages: []bottleneck.Outage{{From: ms / 2, For: 10 * ms}, {From: time.Second, For: ms}},
	})
	for range 2 {
		b.enter(0, 1000, false)
	}
	b.flood(ms/2, ms/2+10*ms, ms, 1000, false)
	b.enter(ms/2+10*ms, 1000, false)
	b.runUntil(900 * ms)
	b.wantLeft(bottleneck.Left[int]{What: 0, At: ms}, bottleneck.Left[int]{What: 1, At: 2 * ms}, bottleneck.Left[int]{What: 12, At: 11*ms + ms/2})
	c := b.flow.Counts()
	if c.Down != 10 || c.Dropped != 0 || len(b.drops) != 10 || b.drops[0] != (drop{2, bottleneck.Down}) {
		t.Errorf("%+v, dropped %v", c, b.drops)
	}
}

// TestRateSustains checks that rounding does not add up.
func TestRateSustains(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 999_999_937, Queue: 1 << 30})
	for range 10_000 {
		b.enter(0, 1250, false)
	}
	b.runUntil(time.Second)
	at := b.left[len(b.left)-1].At
	if want := 100 * ms; at < want || at > want+10*time.Microsecond {
		t.Errorf("100 Mbit took %v, want %v", at, want)
	}
}
