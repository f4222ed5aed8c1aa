package wires

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestNarrowWay: a router on the way carries less than the interfaces, and whether it may say so or
// not, data goes through in both directions, in frames as long as it carries.
func TestNarrowWay(t *testing.T) {
	netns.Require(t)
	for _, c := range []struct {
		v6, silent   bool
		mtu, between int
	}{
		{false, true, 1500, 1400},
		{false, false, 1500, 1400},
		{true, false, 1500, 1400},
		{false, true, 9000, 1500},
		{false, true, 1500, 1500},
		{false, true, 1500, 600},
	} {
		t.Run(fmt.Sprintf("IPv6 %v, ICMP lost %v, %d of %d", c.v6, c.silent, c.between, c.mtu), func(t *testing.T) {
			r := netns.NewRouted(t, c.mtu, c.between)
			var lost *netns.Filter
			if c.silent {
				lost = r.Pair[0].LoseTooBig(t)
				r.Pair[1].LoseTooBig(t)
			}
			const slots, size = 16, 100_000
			at := func(side int) string { return "udp:" + netip.AddrPortFrom(r.Addr(side, c.v6), 0).String() }
			a, b := open(t, r.Pair[0], at(0), 1, slots, size), open(t, r.Pair[1], at(1), 2, slots, size)
			toB, toA := a.dial(b.URL()), b.dial(a.URL())
			there, back := a.flow(toB, 0, slots, size), b.flow(toA, 0, slots, size)
			n := quick(200, 50)
			began := time.Now()
			atOnce(t, func() error { return there.send(n) }, func() error { return back.send(n) })
			b.verify(there)
			a.verify(back)
			headers := 30
			if c.v6 {
				headers = 50
			}
			for _, to := range []*dgrdma.Conn{toA, toB} {
				// Data does not wait until it is found how long frames may be.
				eventually(t, 10*time.Second, "the length is found", func() bool { return to.Stats().FrameSize <= c.between-headers })
				s := to.Stats()
				// A busy machine may take what comes too late for lost.
				if most := c.between - headers; s.FrameSize > most || s.FrameSize < most*9/10 {
					t.Errorf("frames of %d bytes, where %d are carried", s.FrameSize, c.between)
				}
				t.Logf("%v, frames of %d, %d size probes", time.Since(began), s.FrameSize, s.SizeProbes)
			}
			if narrow := c.between < c.mtu; narrow {
				eventually(t, 10*time.Second, "it is told", func() bool { return a.happened(dgrdma.FramesShortened) > 0 })
			}
			if narrow := c.between < c.mtu; narrow != (a.happened(dgrdma.FramesShortened) == 1) {
				t.Errorf("told %d times", a.happened(dgrdma.FramesShortened))
			} else if narrow && c.silent && lost.Dropped() == 0 {
				t.Error("the router said nothing")
			}
		})
	}
}

// TestWayBecomesNarrow: the connection fails with the reason, and the next one finds the length.
func TestWayBecomesNarrow(t *testing.T) {
	t.Parallel()
	netns.Require(t)
	r := netns.NewRouted(t, 1500, 1500)
	r.Pair[0].LoseTooBig(t)
	const slots, size = 4, 100_000
	b := open(t, r.Pair[1], "udp:"+netip.AddrPortFrom(r.Addr(1, false), 0).String(), 2, slots, size)
	b.AcceptAny(true)
	a := open(t, r.Pair[0], "udp:"+netip.AddrPortFrom(r.Addr(0, false), 0).String()+"?giveup=7s", 1, slots, size) // a busy machine asks and answers slowly what arrives
	toB := a.dial(b.URL())
	before := a.flow(toB, 0, slots, size)
	if err := before.send(10); err != nil {
		t.Fatal(err)
	}
	r.Narrow(t, 1400)
	err := toB.Write(context.Background(), &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 0, Bytes: make([]byte, size)}}})
	if !errors.Is(err, dgrdma.ErrNarrow) || !errors.Is(err, dgrdma.ErrPeerDown) {
		t.Fatal(err)
	}
	t.Log(err)
	if err := toB.Reset(0); err != nil {
		t.Fatal(err)
	}
	if err := toB.Write(context.Background(), &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: 0, Bytes: make([]byte, 1000)}, {Addr: 1000, Bytes: make([]byte, size-1000)}}}); err != nil {
		t.Fatal(err)
	}
}
