package harm

import (
	"math/rand/v2"
	"testing"
)

// TestDo: whatever its length, of a datagram only bytes change, and of most some do.
func TestDo(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		changed := 0
		for range 50 {
			around := make([]byte, n+2)
			for i := range around {
				around[i] = byte(i + 1)
			}
			Do(around[1:n+1], rnd.Uint64N)
			differs := false
			for i, b := range around {
				differs = differs || b != byte(i+1)
			}
			if around[0] != 1 || around[n+1] != byte(n+2) {
				t.Fatalf("%d bytes: written outside of them", n)
			}
			if differs {
				changed++
			}
		}
		if n > 20 && changed < 35 {
			t.Errorf("%d of 50 datagrams of %d bytes were changed", changed, n)
		}
	}
}
