package congestion

import "testing"

// TestSpurious checks that bounds which losses made are taken back when all frames of a round came late: once, and to what was before them.
func TestSpurious(t *testing.T) {
	for _, c := range []struct {
		name       string
		lost, late int
		back       bool
	}{{"none came", 2, 0, false}, {"one of two came", 2, 1, false}, {"both came", 2, 2, true}, {"nothing was lost", 0, 1, false}} {
		b := NewBBR(testMTU, 1)
		b.loss.longTerm, b.bandwidth.low = 50_000, 1e6
		for order := range uint32(10) {
			b.OnSent(0, order, testMTU)
		}
		for order := range uint32(c.lost) {
			b.OnLost(0, order, testMTU, false)
		}
		answer := func() { b.loss.longTerm, b.loss.shortTerm, b.bandwidth.low = 10_000, 10_000, 1e5 }
		answer()
		for range c.late {
			b.OnSpurious(0)
		}
		if back := b.loss.longTerm == 50_000 && b.loss.shortTerm == bbrUnknown && b.bandwidth.low == 1e6; back != c.back {
			t.Errorf("%s: bounds are taken back: %v, want %v", c.name, back, c.back)
		}
		answer()
		b.OnSpurious(0)
		if c.back && (b.loss.longTerm != 10_000 || b.loss.shortTerm != 10_000 || b.bandwidth.low != 1e5) {
			t.Errorf("%s: bounds are taken back twice in a round: %+v", c.name, b.loss)
		}
	}
}
