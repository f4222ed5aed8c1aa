package endpoint

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestGaps compares what is given up with a list of ids that did not come (observation
// V9, docs/peers.md).
func TestGaps(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, first := range []frame.Seq{1, 5, 1000, 65000} {
		var g gaps
		missing := make(map[frame.Seq]bool)
		now, since := ack.Instant(time.Hour), ack.Instant(time.Hour)
		if g.roll(now) != 0 {
			t.Error("something is missing of a peer that was never heard")
		}
		newest, mark := first, first
		g.came(now, first)
		if isFirst(first) {
			mark = 0
			for q := frame.Seq(1); q < first; q++ {
				missing[q] = true
			}
		}
		given := 0
		for range 20000 {
			now = now.Add(time.Duration(rnd.IntN(int(5 * time.Millisecond))))
			q := newest + 1 + frame.Seq(rnd.IntN(3))
			if len(missing) > 0 && rnd.IntN(3) == 0 {
				for q = range missing { // which comes late
					break
				}
			} else if rnd.IntN(3) == 0 {
				q = newest - 5000 // which was told
			}
			if q.Diff(newest) > 0 {
				for newest++; newest != q; newest++ {
					missing[newest] = true
				}
			}
			delete(missing, q)
			g.came(now, q)
			want := 0
			if now.Sub(since) >= missedAfter {
				for q := range missing {
					if q.Diff(mark) <= 0 {
						want++
						delete(missing, q)
					}
				}
				mark, since = newest, now
			}
			if got := g.roll(now); got != want {
				t.Fatalf("after %d: %d were given up, want %d", first, got, want)
			}
			if given += want; g.older+g.young != len(missing) {
				t.Fatalf("after %d: %d are missing, want %d", first, g.older+g.young, len(missing))
			}
		}
		if given == 0 {
			t.Error("nothing was given up")
		}
	}
}
