package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestFarWindow checks that a path of 300 ms and 100 Mbit/s is used: it holds more frames than the window of a near path.
func TestFarWindow(t *testing.T) {
	for _, c := range []struct {
		window      int
		least, most float64 // Mbit/s
	}{{0, 80, 100}, {1024, 20, 50}} {
		synctest.Test(t, func(t *testing.T) {
			link := simnet.Link{Latency: 150 * time.Millisecond, Rate: 100e6, Queue: 3000}
			cfg := Config{MTU: 1488, Window: c.window}
			p := newPair(t, pairConfig{link: link, size: 8 << 20, a: cfg, b: cfg})
			defer p.close()
			keepPosting(t, p, 6*time.Second, 8, 1<<20)
			before := p.b.Stats().BytesReceived
			began := time.Now()
			keepPosting(t, p, 4*time.Second, 8, 1<<20)
			mbit := float64(p.b.Stats().BytesReceived-before) * 8 / 1e6 / time.Since(began).Seconds()
			if mbit < c.least || mbit > c.most {
				t.Errorf("window %d: %.1f Mbit/s", c.window, mbit)
			}
		})
	}
}
