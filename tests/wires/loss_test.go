package wires

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/netns"
)

var switchSeed = flag.Uint64("seed", 0, "seed of the switch's faults; 0: a new one")

// TestLoss: the kernel loses frames both ways.
func TestLoss(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		for _, percent := range []int{1, 5} {
			t.Run(fmt.Sprintf("%d%%", percent), func(t *testing.T) {
				pair := netns.NewPair(t, 1500)
				losses := [2]*netns.Filter{pair[0].Lose(t, percent), pair[1].Lose(t, percent)}
				options := ""
				if w.datagrams {
					options = "gso=off" // else whole runs of frames are lost at once
				}
				const slots, size = 16, 64 << 10
				a, b, toB, toA := couple(t, pair, w, slots, size, options)
				there, back := a.flow(toB, 0, slots, size), b.flow(toA, 0, slots, size)
				n := quick(200, 40)
				began := time.Now()
				atOnce(t, func() error { return there.send(n) }, func() error { return back.send(n) })
				took := time.Since(began)
				b.verify(there)
				a.verify(back)
				t.Logf("%.1f MB/s each way", float64(n*size)/took.Seconds()/1e6)
				for side, e := range []*end{a, b} {
					e.counted(n)
					lost, s := losses[side].Dropped(), e.Stats()
					if again := s.RetransmitsFast + s.RetransmitsTimed; lost == 0 || again == 0 {
						t.Errorf("side %d: %d frames lost on the way in; %+v", side, lost, s)
					}
				}
			})
		}
	})
}

// TestLossOfRuns: with offload, the kernel loses whole runs of frames.
func TestLossOfRuns(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 9000)
		loss := pair[1].Lose(t, 5)
		const slots, size = 16, 64 << 10
		a, b, toB, _ := couple(t, pair, w, slots, size)
		there := a.flow(toB, 0, slots, size)
		if err := there.send(quick(400, 100)); err != nil {
			t.Fatal(err)
		}
		b.verify(there)
		if loss.Dropped() == 0 {
			t.Error("nothing was lost")
		}
	})
}

// TestLimitedLink: the kernel's queue in front of a link of 40 MB/s overflows:
// it holds fewer frames than a connection sends before it has heard anything.
func TestLimitedLink(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const rate = 40_000_000
		pair[0].SetRate(t, rate, 40_000)
		const slots, size = 16, 64 << 10
		a, b, toB, _ := couple(t, pair, w, slots, size)
		there := a.flow(toB, 0, slots, size)
		n := quick(400, 100)
		began := time.Now()
		if err := there.send(n); err != nil {
			t.Fatal(err)
		}
		b.verify(there)
		s := a.Stats()
		t.Logf("%.1f MB/s of %d; %+v", float64(n*size)/time.Since(began).Seconds()/1e6, rate/1_000_000, s)
		if s.RetransmitsFast+s.RetransmitsTimed == 0 {
			t.Error("nothing was lost")
		}
		// Of Ethernet frames the kernel says so (ENOBUFS), of datagrams it does not.
		if !w.datagrams && s.Transport.SendDrops == 0 {
			t.Error("the kernel refused nothing")
		}
	})
}

// TestSwitch: everything at once, from a seed.
func TestSwitch(t *testing.T) {
	bad := netns.Faults{
		Drop: 0.02, Duplicate: 0.02, Reorder: 0.03, Corrupt: 0.01, Delay: 200 * time.Microsecond, Rate: 100_000_000,
	}
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		for _, mtu := range []int{1500, 9000} {
			t.Run(fmt.Sprintf("mtu=%d", mtu), func(t *testing.T) {
				seed := *switchSeed
				if seed == 0 {
					seed = uint64(time.Now().UnixNano())
				}
				s := netns.NewSwitch(t, mtu, seed, [2]netns.Faults{bad, bad})
				const slots, size = 16, 30_001
				a, b, toB, toA := couple(t, s.Pair, w, slots, size)
				there, back := a.flow(toB, 0, slots, size), b.flow(toA, 0, slots, size)
				n := quick(300, 60)
				atOnce(t, func() error { return there.send(n) }, func() error { return back.send(n) })
				b.verify(there)
				a.verify(back)
				for side, e := range []*end{a, b} {
					p := s.Passed(side)
					t.Logf("from side %d: %+v", side, p)
					if p.Frames < 3000 {
						continue // too few to be sure that each fault befell some
					}
					if p.Dropped == 0 || p.Duplicated == 0 || p.Reordered == 0 || p.Corrupted == 0 {
						t.Error("the switch was too kind")
					}
					if e.Stats().Duplicates == 0 {
						t.Errorf("side %d noticed no duplicate", side)
					}
				}
			})
		}
	})
}

// TestSwitchSpoils: what is corrupted does not arrive, whatever the byte.
func TestSwitchSpoils(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		s := netns.NewSwitch(t, 1500, 1, [2]netns.Faults{})
		const slots, size = 8, 20_000
		a, b, toB, _ := couple(t, s.Pair, w, slots, size)
		there := a.flow(toB, 0, slots, size)
		if err := there.send(slots); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, "all transactions are counted", func() bool { return b.Stats().Completions == slots })
		before := b.Stats()
		s.SetFaults(0, netns.Faults{Corrupt: 1})
		sent := make(chan error, 1)
		go func() { sent <- there.send(slots) }()
		eventually(t, patience, "frames corrupted", func() bool { return s.Passed(0).Corrupted > 20 })
		if after := b.Stats(); after.Completions != slots || after.Refused != before.Refused || after.Transport.Foreign != 0 {
			t.Errorf("corrupted frames arrived: %+v", after)
		}
		s.SetFaults(0, netns.Faults{})
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		b.verify(there)
	})
}
