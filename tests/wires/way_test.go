package wires

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestDialOnTheOtherNetwork: a program that gives no address reaches peers on a network that is
// not the one that this machine has first, by IPv4 and by IPv6, and is told where there is none.
func TestDialOnTheOtherNetwork(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	pair[0].In(func() {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			t.Fatal(err)
		}
		// No peer finds it, and it comes first.
		if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(198, 18, 0, 1), Mask: net.CIDRMask(32, 32)}}); err != nil {
			t.Fatal(err)
		}
	})
	for _, there := range []netip.Addr{netns.IPv4(1), netns.IPv6(1)} {
		var a *dgrdma.Endpoint
		b := open(t, pair[1], "udp:"+netip.AddrPortFrom(there, 0).String(), 2, 1, 64)
		b.AcceptAny(true)
		pair[0].In(func() {
			var err error
			if a, err = dgrdma.Open("udp", nil); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { a.Close() })
			_, err = a.Dial("ocpi-udp-rdma:203.0.113.9;7100;64.9.10")
			if err == nil || !strings.Contains(err.Error(), "no way there") {
				t.Errorf("to where there is no route: %v", err)
			}
			toB, err := a.Dial(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			if err := toB.Write(t.Context(), &dgrdma.Transaction{Completion: dgrdma.Word(0, 7)}); err != nil {
				t.Error(err)
			}
			if here := toB.Peer().Addr.Local(); here != netns.IPv4(0) && here != netns.IPv6(0) {
				t.Errorf("dialed %v from %v", there, here)
			}
		})
	}
}
