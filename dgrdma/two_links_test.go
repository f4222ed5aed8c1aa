package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestTwoLinks checks that frames take two links in turn, of which one is longer, and nothing is lost. What was overtaken is not sent
// again, and the window is that of a path that loses nothing.
func TestTwoLinks(t *testing.T) {
	const ms = time.Millisecond
	all := []struct{ way, longer time.Duration }{{ms / 20, 2 * ms}, {ms / 2, ms}, {5 * ms, 5 * ms}}
	for _, c := range fewer(all, all[:1]) {
		for _, back := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				link := simnet.Link{Latency: c.way, Rate: 3e8}
				cfg := Config{MTU: 1488}
				p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
				defer p.close()
				keepPosting(t, p, 50*ms, 4, 1<<17)
				link.Script = func(i int, _ []byte) simnet.Verdict { return simnet.Delay(time.Duration(i%2) * c.longer) }
				p.net.Link(addrA, addrB, link)
				if back {
					p.net.Link(addrB, addrA, link)
				}
				keepPosting(t, p, fewer(2*time.Second, 500*ms), 4, 1<<17)
				if sent, again := keepPosting(t, p, fewer(500*ms, 100*ms), 4, 1<<17); again > sent/20 {
					t.Errorf("%v, and %v longer, both ways %v: %d of %d frames left again", 2*c.way, c.longer, back, again, sent)
				}
			})
		}
	}
}
