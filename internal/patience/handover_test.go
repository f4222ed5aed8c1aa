package patience

import (
	"testing"
	"time"
)

// TestRecord checks what each absence makes of the score, within bounds. If none is left, polling pauses, and begins again.
func TestRecord(t *testing.T) {
	const long = time.Millisecond
	for _, c := range []struct {
		score   int
		absence time.Duration
		then    int
		pauses  int32
	}{
		{3, 0, 4, 0},
		{3, long - 1, 4, 0},
		{3, long, 1, 0},
		{3, time.Hour, 1, 0},
		{MaxScore - 1, 0, MaxScore, 0},
		{MaxScore, 0, MaxScore, 0},
		{2, long, 0, 0},
		{0, 0, 1, 0},
		{1, long, MaxScore / 2, Pause},
		{0, long, MaxScore / 2, Pause},
	} {
		h := Handover{Score: c.score}
		if h.Record(c.absence, long); h.Score != c.then || h.Pauses.Load() != c.pauses {
			t.Errorf("score %d, away for %v: score %d, and %d pauses; want %d, and %d", c.score, c.absence, h.Score, h.Pauses.Load(), c.then, c.pauses)
		}
		for n := range c.pauses {
			if h.MayPoll() {
				t.Fatalf("polls after %d of %d waits", n, c.pauses)
			}
		}
		if !h.MayPoll() {
			t.Error("the pause does not end")
		}
	}
}
