package bottleneck_test

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// TestDelays checks shares of a distribution that is known: a burst, of which each waits a
// millisecond longer than that before it.
func TestDelays(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 1_000_000})
	if b.flow.Delay(0.95) != 0 {
		t.Error("a delay of no frames")
	}
	for range 200 {
		b.enter(0, 1000, false)
	}
	b.runUntil(time.Second)
	for share, want := range map[float64]time.Duration{0.5: 99 * ms, 0.95: 189 * ms, 1: 199 * ms} {
		if d := b.flow.Delay(share); d < want-ms || d > want+ms {
			t.Errorf("Delay(%v) = %v, want %v", share, d, want)
		}
	}
}

// TestLongDelay checks that what waits longer than is told apart counts as that.
func TestLongDelay(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8, Queue: 1_000_000})
	b.enter(0, 1000, false) // 1000 s
	b.enter(0, 1000, false)
	b.runUntil(time.Hour)
	if d := b.flow.Delay(1); d < 99*time.Second || d > 101*time.Second {
		t.Errorf("%v", d)
	}
}
