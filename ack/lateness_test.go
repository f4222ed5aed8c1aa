package ack

import (
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// latenessTest counts ids without wrapping, on both sides.
type latenessTest struct {
	t     *testing.T
	l     Lateness
	first frame.Seq
	used  uint32
	now   Instant
}

// latenessTests runs a test near the wraps of the peer's ids and of the count of
// our own.
func latenessTests(t *testing.T, f func(l *latenessTest)) {
	for _, first := range testFirsts {
		for _, used := range []uint32{0, 1<<32 - 20000} {
			f(&latenessTest{t: t, first: first, used: used})
		}
	}
}

func (l *latenessTest) want(late bool, places ...int) {
	l.t.Helper()
	for _, p := range places {
		if got := l.l.Late(l.now, l.first.Add(p), l.used); got != late {
			l.t.Fatalf("frame %d: late is %v, want %v", p, got, late)
		}
	}
}

// both lets both sides use so many ids more, place being the peer's last one.
func (l *latenessTest) both(place, n int) int {
	l.t.Helper()
	for range n {
		place++
		l.used++
		l.now = l.now.Add(2 * fastest)
		l.want(false, place)
	}
	return place
}

// A frame that was held back while our ids passed half their space names ids
// that may have been used again.
func TestLatenessHeldBack(t *testing.T) {
	latenessTests(t, func(l *latenessTest) {
		p := l.both(0, 100)
		held := p - 1
		p = l.both(p, lateBy-100)
		l.want(false, p-held) // p-1 frames before
		l.want(false, held)
		p = l.both(p, 2*lateBy/(lateMarks/2))
		l.want(true, held, held-50, held)
		l.want(false, p, p-1, p-1000)
		// It leaves no trace.
		l.both(p, 100)
	})
}

// While we stand still nothing grows too old, however much the peer sends.
func TestLatenessCountsOwnIDs(t *testing.T) {
	latenessTests(t, func(l *latenessTest) {
		p := l.both(0, 100)
		for range 20000 {
			p++
			l.want(false, p)
		}
		l.want(false, p-20000, p-1024, p-1)
	})
}

// Ordinary reordering is believed, at any ratio of the two sides' ids.
func TestLatenessReordering(t *testing.T) {
	for _, ratio := range []struct{ ours, theirs int }{{1, 1}, {10, 1}, {1, 10}, {1, 3}, {0, 1}, {500, 1}, {1, 500}} {
		latenessTests(t, func(l *latenessTest) {
			rnd := rand.New(rand.NewPCG(1, 2))
			for p, n := 0, 0; p < 400000/max(1, ratio.ours/100); n++ {
				if n%ratio.theirs == 0 {
					l.used += uint32(ratio.ours)
				}
				q := p + 1
				if n%3 == 2 { // one in three frames comes late
					q -= min(q, rnd.IntN(20))
				}
				p = max(p, q)
				l.now += Instant(fastest)
				if l.l.Late(l.now, l.first.Add(q), l.used) {
					t.Fatalf("%d of our ids for %d: frame %d, %d behind, is late", ratio.ours, ratio.theirs, q, p-q)
				}
			}
		})
	}
}

// Both sides used up their spans while nothing got through, at a rate at which
// ids wrap in milliseconds. What comes then is believed: first the frames sent
// again, then new ones, of which the first is one too far to be sure.
func TestLatenessBlackout(t *testing.T) {
	latenessTests(t, func(l *latenessTest) {
		p := l.both(0, 70000)
		oldest := p - 1000
		for range 3 {
			l.used += MaxHistory - 1
			l.want(false, oldest, oldest+1, p)
			next := oldest + MaxHistory
			l.now = l.now.Add(MaxHistory * fastest)
			l.want(true, next)
			l.want(false, next+1, next, next+2)
			p = l.both(next+2, 1000)
			oldest = p - 1000
		}
	})
}

// A single far jump may be a copy from before the ids wrapped; copies of it may
// come as well.
func TestLatenessJump(t *testing.T) {
	latenessTests(t, func(l *latenessTest) {
		p := l.both(0, 10)
		l.want(false, p+plausibleJump)
		p += plausibleJump
		far := p + 20000
		l.now = l.now.Add(sec)
		l.want(true, far, far, far)
		l.want(false, p+1)
		l.want(true, far+1) // the first one is forgotten
		l.want(true, far+5000)
		l.want(true, far-3000)
		l.now = l.now.Add(sec)
		l.want(false, far-3000-plausibleJump)
		p = far - 3000 - plausibleJump
		l.both(p, 100)
		// What the jump passed over is overtaken, not far.
		l.want(false, p-50, p-30000)
	})
}

// Copies from before a wrap, however many, come amid what the peer sends now:
// there was no time for the ids between.
func TestLatenessJumpWithoutSilence(t *testing.T) {
	latenessTests(t, func(l *latenessTest) {
		p := l.both(0, 10)
		for i := range 1000 {
			l.want(true, p+20000+i)
			l.want(true, p+20100+i)
			p = l.both(p, 1)
		}
		l.now = l.now.Add(20000*fastest - 1)
		l.want(true, p+20000, p+20001)
		l.now = l.now.Add(10 * fastest)
		l.want(false, p+20002)
	})
}
