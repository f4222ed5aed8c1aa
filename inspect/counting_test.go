package inspect

import (
	"math/rand/v2"
	"testing"
	"time"
)

// hideOneByOne is hide without a shortcut.
func (c *counting) hideOneByOne(from, to uint64, salt uint32, record int, k *sealedCounts) {
	for n := from + 1; n <= to; n++ {
		switch {
		case n > c.top:
			c.advance(n, record, k)
		case c.top-n >= counterWindow || c.at(n).seen:
			continue
		}
		*c.at(n) = counterSlot{salt: salt, seen: true}
	}
}

// TestHiddenCounters checks that many counters that cannot be seen, of which only the last ones have room, count as they do one by one (F8).
func TestHiddenCounters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		var a, b counting
		var of, want sealedCounts
		at := rnd.Uint64N(2000)
		for record := range 100 {
			at += 1 + rnd.Uint64N(4)*rnd.Uint64N(300)
			n := at - min(at, rnd.Uint64N(3)*rnd.Uint64N(400))
			salt := uint32(record)
			if rnd.IntN(3) == 0 {
				salt = 0 // a copy, if that counter was there
			}
			a.add(n, salt, record, &of)
			b.add(n, salt, record, &want)
			if rnd.IntN(4) == 0 && a.top >= n {
				to := n + rnd.Uint64N(3)*rnd.Uint64N(1200)
				a.hide(n, to, salt, record, &of)
				b.hideOneByOne(n, to, salt, record, &want)
				at = max(at, to)
			}
		}
		a.settle(&of)
		b.settle(&want)
		if of != want {
			t.Fatalf("%+v, one by one %+v", of, want)
		}
	}
}
