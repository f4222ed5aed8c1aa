package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCopyInVainIsNoMeasure checks that the acknowledgement of a first copy is not taken for a
// short round trip. Frames and acknowledgements are lost on a path whose round trip does not
// change, and the acknowledgement of a first copy often comes soon after the second one left. Taken
// for a round trip it would have more frames sent again in vain, for ever.
func TestCopyInVainIsNoMeasure(t *testing.T) {
	all := []time.Duration{500 * time.Microsecond, 5 * time.Millisecond}
	for _, way := range fewer(all, all[:1]) {
		for _, depth := range fewer([]int{4, 20}, []int{20}) {
			synctest.Test(t, func(t *testing.T) {
				link := simnet.Link{Latency: way, Rate: 1e9}
				cfg := Config{MTU: 1488}
				p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
				defer p.close()
				keepPosting(t, p, 50*time.Millisecond, depth, 1<<17)
				link.Loss = 0.05
				p.net.Link(addrA, addrB, link)
				p.net.Link(addrB, addrA, link)
				long := fewer(500*time.Millisecond, 150*time.Millisecond)
				keepPosting(t, p, long, depth, 1<<17)
				if sent, again := keepPosting(t, p, long, depth, 1<<17); again > sent/4 {
					t.Errorf("way %v, %d at a time: %d of %d frames left again", way, depth, again, sent)
				}
				if rtt := p.toB.Stats().RTT; rtt < 2*way {
					t.Errorf("way %v, %d at a time: a round trip takes %v", way, depth, rtt)
				}
			})
		}
	}
}
