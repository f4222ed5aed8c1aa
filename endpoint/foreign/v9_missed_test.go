package foreign

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
		var g missing
		absent := make(map[frame.Seq]bool)
		now, since := ack.Instant(time.Hour), ack.Instant(time.Hour)
		if g.roll(now) != 0 {
			t.Error("something is missing of a peer that was never heard")
		}
		newest, mark := first, first
		g.came(now, first)
		if isFirst(first) {
			mark = 0
			for q := frame.Seq(1); q < first; q++ {
				absent[q] = true
			}
		}
		given := 0
		for range 20000 {
			now = now.Add(time.Duration(rnd.IntN(int(5 * time.Millisecond))))
			q := newest + 1 + frame.Seq(rnd.IntN(3))
			if len(absent) > 0 && rnd.IntN(3) == 0 {
				for q = range absent { // which comes late
					break
				}
			} else if rnd.IntN(3) == 0 {
				q = newest - 5000 // which was told
			}
			if q.Diff(newest) > 0 {
				for newest++; newest != q; newest++ {
					absent[newest] = true
				}
			}
			delete(absent, q)
			if g.came(now, q); rnd.IntN(4) == 0 {
				continue // more of the same batch
			}
			want := 0
			if now.Sub(since) >= missedAfter {
				for q := range absent {
					if q.Diff(mark) <= 0 {
						want++
						delete(absent, q)
					}
				}
				mark, since = newest, now
			}
			if got := g.roll(now); got != want {
				t.Fatalf("after %d: %d were given up, want %d", first, got, want)
			}
			if given += want; g.older+g.young != len(absent) {
				t.Fatalf("after %d: %d are missing, want %d", first, g.older+g.young, len(absent))
			}
		}
		if given == 0 {
			t.Error("nothing was given up")
		}
	}
}

// TestGapsHaveTheirTime: what did not come is given up when it was overtaken for
// missedAfter before the mark moved, and for as long after.
func TestGapsHaveTheirTime(t *testing.T) {
	const began = ack.Instant(time.Hour)
	var g missing
	g.came(began, 1000)
	g.came(began, 1003)
	for _, x := range []struct {
		after time.Duration
		want  int
	}{{missedAfter - 1, 0}, {missedAfter, 0}, {2*missedAfter - 1, 0}, {2 * missedAfter, 2}, {4 * missedAfter, 0}} {
		if got := g.roll(began.Add(x.after)); got != x.want {
			t.Errorf("after %v %d are given up, want %d", x.after, got, x.want)
		}
	}
}

// TestGapIsGivenUpOnce: when it is time, and not when something else is.
func TestGapIsGivenUpOnce(t *testing.T) {
	const at = ack.Instant(time.Hour)
	g := deadline{frames: 3, at: at}
	for _, x := range []struct {
		now   ack.Instant
		want  int
		armed bool
	}{{at - 1, 0, true}, {at, 3, false}, {at, 0, false}, {at + 1, 0, false}} {
		got := g.expire(x.now)
		if armed := g.armed(); got != x.want || armed != x.armed || g.told == armed {
			t.Errorf("at %d: %d are given up, want %d; armed %v, told %v", x.now-at, got, x.want, armed, g.told)
		}
	}
}
