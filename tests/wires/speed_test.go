package wires

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestDefaultBuffers: with the kernel's own socket buffers, which hold less
// than the window, large transactions are not slow.
func TestDefaultBuffers(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for _, mtu := range []int{1500, 9000} {
			pair := netns.NewPair(t, mtu)
			const slots, size = 8, 1 << 20
			a, b, toB, _ := couple(t, pair, w, slots, size, "sockbuf=default")
			f := a.flow(toB, 0, slots, size)
			n := quick(200, 60)
			began := time.Now()
			if err := f.send(n); err != nil {
				t.Fatal(err)
			}
			speed := float64(n*size) / time.Since(began).Seconds() / 1e6
			b.verify(f)
			s := b.Stats()
			t.Logf("MTU %d: %.0f MB/s, %d datagrams dropped by the kernel, %d frames sent again", mtu, speed,
				s.Transport.KernelDrops, a.Stats().RetransmitsFast+a.Stats().RetransmitsTimed)
			// It is ten times that on a machine at rest, and a tenth if every loss is
			// waited for.
			if least := 15.0; speed < least && !fixture.Race {
				t.Errorf("MTU %d: %.0f MB/s, want %.0f at least; %+v", mtu, speed, least, a.Stats())
			}
		}
	})
}
