package udp

import (
	"net/netip"
	"testing"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
)

// TestMayNarrow: to another machine, and not to this one, nor where it was said what is carried.
func TestMayNarrow(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	for _, side := range []func(int) netip.Addr{netns.IPv4, netns.IPv6} {
		for _, mtu := range []int{0, 1400} {
			var c *Conn
			pair[0].In(func() {
				var err error
				if c, err = Listen(Config{Addr: netip.AddrPortFrom(side(0), 0), MTU: mtu}); err != nil {
					t.Fatal(err)
				}
			})
			defer c.Close()
			loopback := netip.IPv6Loopback()
			if side(0).Is4() {
				loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
			}
			for to, want := range map[netip.Addr]bool{side(0): false, loopback: false, side(1): mtu == 0} {
				if got := c.MayNarrow(transport.UDPAddr(netip.AddrPortFrom(to, 7100))); got != want {
					t.Errorf("mtu %d, to %v: %v", mtu, to, got)
				}
			}
		}
	}
}
