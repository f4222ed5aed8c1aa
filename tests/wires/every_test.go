package wires

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestOneAddressGoes: of an endpoint at all addresses one is taken away. The peers that asked it
// find it gone and come back when it is, and those that asked another one notice nothing.
func TestOneAddressGoes(t *testing.T) {
	netns.Require(t)
	t.Parallel()
	for _, x := range []struct{ first, second netip.Addr }{
		{netns.IPv4(1), netip.MustParseAddr("10.77.0.50")}, {netns.IPv6(1), netip.MustParseAddr("fd77::50")},
	} {
		t.Run(x.first.String(), func(t *testing.T) {
			t.Parallel() // most of it is waiting for who is gone
			pair := netns.NewPair(t, 1500)
			pair[1].Give(t, netns.Device, x.second)
			const slots, size = 16, 32 << 10
			b := open(t, pair[1], "udp:[::]?accept=any&giveup=2s", 2, 2*slots, size)
			var ends [2]*end
			var conns [2]*dgrdma.Conn
			var flows [2]*flow
			for i, ip := range []netip.Addr{x.first, x.second} {
				at := ip.String()
				if ip.Is6() {
					at = "[" + at + "]"
				}
				ends[i] = open(t, pair[0], "udp:[::]?giveup=2s", 10+i, 1, 8)
				conns[i] = ends[i].dial(strings.Replace(b.URL(), netns.IPv4(1).String(), at, 1))
				flows[i] = ends[i].flow(conns[i], i*slots, slots, size)
			}
			var stops [2]func() error
			for i, f := range flows {
				stops[i] = background(f)
				goesOn(t, f)
			}
			pair[1].Take(t, netns.Device, x.second)
			<-conns[1].Done()
			if err := stops[1](); !errors.Is(err, dgrdma.ErrPeerDown) {
				t.Errorf("who asked what is gone: %v", err)
			}
			goesOn(t, flows[0])
			pair[1].Give(t, netns.Device, x.second)
			if err := conns[1].Reset(0); err != nil {
				t.Fatal(err)
			}
			again := ends[1].flow(conns[1], slots, slots, size)
			again.next = flows[1].next
			if err := errors.Join(again.send(100), stops[0](), b.Err()); err != nil {
				t.Fatal(err)
			}
			if ends[0].happened(dgrdma.PeerDown) != 0 {
				t.Error("who asked the other one found it gone")
			}
		})
	}
}
