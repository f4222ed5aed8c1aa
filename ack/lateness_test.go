package ack

import (
	"math/rand/v2"
	"testing"
)

// latenessTest counts ids from the first on, on both sides.
type latenessTest struct {
	t     *testing.T
	l     Lateness
	first Wide
	ours  Wide
}

// latenessTests runs a test near the wraps of the 16 bits and of the 32.
func latenessTests(t *testing.T, f func(l *latenessTest)) {
	for _, first := range []Wide{1, 65530, 1<<32 - 20000} {
		for _, ours := range []Wide{0, 1<<32 - 20000} {
			f(&latenessTest{t: t, first: first, ours: ours})
		}
	}
}

func (l *latenessTest) want(late bool, places ...int) {
	l.t.Helper()
	for _, p := range places {
		if got := l.l.Late(l.first+Wide(p), l.ours); got != late {
			l.t.Fatalf("frame %d: late is %v, want %v", p, got, late)
		}
	}
}

// both lets both sides use so many ids more, place being the peer's last one.
func (l *latenessTest) both(place, n int) int {
	l.t.Helper()
	for range n {
		place++
		l.ours++
		l.want(false, place)
	}
	return place
}

// A frame that was held back while our ids went on so far names ids that cannot
// be told from later ones.
func TestLatenessHeldBack(t *testing.T) {
	latenessTests(t, func(l *latenessTest) {
		p := l.both(0, 100)
		held := p - 1
		p = l.both(p, lateBy-100)
		l.want(false, held)
		p = l.both(p, 2*lateBy/(lateMarks/2))
		l.want(true, held, held-50, held)
		l.want(false, p, p-1, p-1000)
		// It leaves no trace.
		p = l.both(p, 70000)
		l.want(true, held, p-60000)
	})
}

// While we stand still nothing grows too old, however much the peer sends.
func TestLatenessCountsOwnIDs(t *testing.T) {
	latenessTests(t, func(l *latenessTest) {
		p := l.both(0, 100)
		for range 200000 {
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
					l.ours += Wide(ratio.ours)
				}
				q := p + 1
				if n%3 == 2 { // one in three frames comes late
					q -= min(q, rnd.IntN(20))
				}
				p = max(p, q)
				if l.l.Late(l.first+Wide(q), l.ours) {
					t.Fatalf("%d of our ids for %d: frame %d, %d behind, is late", ratio.ours, ratio.theirs, q, p-q)
				}
			}
		})
	}
}

// An acknowledgement that is believed begins less than half the id space
// behind the oldest id in flight: within what can be compared.
func TestLatenessComparable(t *testing.T) {
	if worst := lateBy + MaxHistory + MaxRun; worst >= 1<<15 {
		t.Errorf("%d ids behind", worst)
	}
}

// An acknowledgement is too old from a place on, by the newest frame before which its
// own was sent.
func TestLatenessBounds(t *testing.T) {
	const apart = lateBy / (lateMarks / 2)
	var l Lateness
	for _, tt := range []struct {
		theirs, ours Wide
		want         bool
	}{
		{10, 0, false}, {20, apart, false},
		{9, lateBy, false}, {9, lateBy + 1, true}, {15, lateBy + 1, false},
		{15, apart + lateBy, false}, {15, apart + lateBy + 1, true}, {20, apart + lateBy + 1, false},
	} {
		if got := l.Late(tt.theirs, tt.ours); got != tt.want {
			t.Errorf("%d at %d: %v, want %v", tt.theirs, tt.ours, got, tt.want)
		}
	}
}
