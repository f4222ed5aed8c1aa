package patience

import (
	"testing"
	"time"
)

// TestJudge: what each absence makes of it, within bounds; if no luck is left, help pauses, and begins anew.
func TestJudge(t *testing.T) {
	const long = time.Millisecond
	for _, c := range []struct {
		luck    int
		absence time.Duration
		then    int
		pauses  int32
	}{
		{3, 0, 4, 0},
		{3, long - 1, 4, 0},
		{3, long, 1, 0},
		{3, time.Hour, 1, 0},
		{MostLuck - 1, 0, MostLuck, 0},
		{MostLuck, 0, MostLuck, 0},
		{2, long, 0, 0},
		{0, 0, 1, 0},
		{1, long, MostLuck / 2, Pause},
		{0, long, MostLuck / 2, Pause},
	} {
		h := Help{Luck: c.luck}
		if h.Judge(c.absence, long); h.Luck != c.then || h.Pauses.Load() != c.pauses {
			t.Errorf("luck %d, away for %v: luck %d, and %d pauses; want %d, and %d", c.luck, c.absence, h.Luck, h.Pauses.Load(), c.then, c.pauses)
		}
		for n := range c.pauses {
			if h.Welcome() {
				t.Fatalf("welcome after %d of %d waits", n, c.pauses)
			}
		}
		if !h.Welcome() {
			t.Error("the pause does not end")
		}
	}
}
