package link

import (
	"testing"
	"testing/synctest"
)

// TestNumbersOfLinks checks that numbers begin at random, so that a peer cannot know those of a host
// that was opened again, and that none is 0.
func TestNumbersOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		if x, y := a.newNumber(), b.newNumber(); x == y {
			t.Errorf("two hosts begin at %d", x)
		}
		a.number.Store(1<<32 - 1)
		if x := a.newNumber(); x != 1 {
			t.Errorf("after the last number comes %d", x)
		}
	})
}
