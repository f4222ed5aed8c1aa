package wires

import (
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestTransfer: both directions at once, for every size of packets, with and
// without offload, and with the profiles that get along with themselves.
func TestTransfer(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for _, mtu := range []int{1500, 9000} {
			pair := netns.NewPair(t, mtu)
			for _, options := range [][]string{
				{"profile=native"},
				{"profile=native", "gso=off", "gro=off"},
				{"profile=native", "gso=off"},
				{"profile=native", "gro=off"},
				{"profile=opencpi"},
			} {
				if len(options) > 1 && !w.datagrams {
					continue
				}
				t.Run(fmt.Sprintf("mtu=%d/%v", mtu, options), func(t *testing.T) {
					transfer(t, pair, w, mtu, options)
				})
			}
		}
	})
}

func transfer(t *testing.T, pair netns.Pair, w wire, mtu int, options []string) {
	for _, size := range []int{8, 100_000} {
		const slots = 16
		a, b, toB, toA := couple(t, pair, w, slots, size, options...)
		there, back := a.flow(toB, 0, slots, size), b.flow(toA, 0, slots, size)
		n := quick(200, 50)
		atOnce(t, func() error { return there.send(n) }, func() error { return back.send(n) })
		b.verify(there)
		a.verify(back)
		for _, e := range []*end{a, b} {
			e.counted(n)
			s := e.Stats()
			if s.Transport.Truncated+s.Transport.Foreign != 0 {
				t.Errorf("size %d: %+v", size, s)
			}
			if full := s.BytesSent / s.FramesSent; size > mtu && options[0] == "profile=native" && full < uint64(mtu)/4 {
				t.Errorf("size %d: frames have %d bytes on average, of at most %d", size, full, mtu)
			}
		}
		a.Close()
		b.Close()
	}
}
