package wires

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestDefaultBuffers: with the kernel's own socket buffers, which hold less
// than the window, large transactions are not slow.
func TestDefaultBuffers(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for _, mtu := range []int{1500, 9000} {
			pair := netns.NewPair(t, mtu)
			const slots, size = 8, 1 << 20
			var senders, receivers [2]*end
			var flows [2]*flow
			for i, options := range []string{"sockbuf=default", ""} {
				senders[i] = open(t, pair[0], with(w.local(0), options), 1+2*i, slots, size)
				receivers[i] = open(t, pair[1], with(w.local(1), options, "accept=any"), 2+2*i, slots, size)
				flows[i] = senders[i].flow(senders[i].dial(receivers[i].URL()), 0, slots, size)
			}
			// In turns: what else the machine does is the same for both.
			var took [2]time.Duration
			for range quick(4, 2) {
				for i, f := range flows {
					began := time.Now()
					if err := f.send(20); err != nil {
						t.Fatal(err)
					}
					took[i] += time.Since(began)
				}
			}
			for i, f := range flows {
				receivers[i].verify(f)
			}
			s := senders[0].Stats()
			t.Logf("MTU %d: %v, otherwise %v; %d datagrams dropped by the kernel, of %d frames sent %d again soon and %d late", mtu, took[0], took[1],
				receivers[0].Stats().Transport.KernelDrops, s.FramesSent, s.RetransmitsFast, s.RetransmitsTimed)
			// It takes up to four times as long. If every loss is waited for, all that are sent again are
			// late, and it takes ten times as long as that.
			if s.RetransmitsTimed > s.FramesSent/20 || took[0] > 20*took[1] {
				t.Errorf("MTU %d: %v with the kernel's buffers, %v with larger ones; %+v", mtu, took[0], took[1], s)
			}
		}
	})
}
