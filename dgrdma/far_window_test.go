package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestFarWindow checks that a path of 300 ms and 100 Mbit/s is used: it holds more frames than the window of a near path.
func TestFarWindow(t *testing.T) {
	all := []struct {
		window      int
		least, most float64 // Mbit/s
	}{{0, 80, 100}, {1024, 20, 50}}
	for _, c := range fewer(all, all[1:]) {
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

// TestFarWindowOutlastsLosses checks that such a path is used on while one frame waits for its fourth copy: the window counts from the oldest one.
func TestFarWindowOutlastsLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 300 * time.Millisecond
		link := simnet.Link{Latency: trip / 2, Rate: fewer[int64](100e6, 25e6), Queue: 3000}
		cfg := Config{MTU: 1488}
		p := newPair(t, pairConfig{link: link, size: 16 << 20, a: cfg, b: cfg})
		defer p.close()
		var lost []uint32 // the id of each copy
		var again time.Time
		began := time.Now()
		link.Script = func(_ int, b []byte) simnet.Verdict {
			var f frame.SessionFrame
			if time.Since(began) < 4*time.Second || len(lost) == 4 || f.Decode(b) != nil || f.Control != frame.NoControl || len(lost) > 0 && f.ID != lost[0] {
				return simnet.Deliver()
			}
			if lost = append(lost, f.ID); len(lost) == 4 {
				again = time.Now()
				return simnet.Deliver()
			}
			return simnet.Drop()
		}
		p.net.Link(addrA, addrB, link)
		keepPosting(t, p, 6*time.Second, 12, 1<<20)
		if n := p.a.Stats().WindowFull; n > 0 || len(lost) != 4 || again.Sub(began) > 6*time.Second {
			t.Errorf("the window was full %d times, %d copies left", n, len(lost))
		}
	})
}
