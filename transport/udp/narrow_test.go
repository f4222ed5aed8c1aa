package udp

import (
	"net/netip"
	"os/exec"
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

// TestIsNear: this machine, and another one on a network of it; not one behind a router, or through a tunnel, nor one to which no way leads.
func TestIsNear(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	var c *Conn
	pair[0].In(func() {
		ip(t, "route", "add", "192.0.2.0/24", "via", netns.IPv4(1).String())
		var err error
		if c, err = Listen(Config{Addr: netip.MustParseAddrPort("0.0.0.0:0")}); err != nil {
			t.Fatal(err)
		}
	})
	defer c.Close()
	near := func(to netip.Addr) bool { return c.IsNear(transport.UDPAddr(netip.AddrPortFrom(to, 7100))) }
	for to, want := range map[netip.Addr]bool{
		netns.IPv4(0): true, netip.MustParseAddr("127.0.0.1"): true, netns.IPv4(1): true, netip.MustParseAddr("192.0.2.1"): false, netip.MustParseAddr("203.0.113.1"): false,
	} {
		if got := near(to); got != want {
			t.Errorf("%v: %v, want %v", to, got, want)
		}
	}
	pair[0].In(func() {
		ifi, _, err := WayTo(netip.Addr{}, netns.IPv4(1))
		if err != nil {
			t.Fatal(err)
		}
		ip(t, "link", "set", ifi.Name, "arp", "off")
	})
	if near(netns.IPv4(1)) {
		t.Error("nobody is looked for on the interface, and the peer is near")
	}
}

// ip runs that command.
func ip(t *testing.T, arguments ...string) {
	t.Helper()
	if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", arguments, err, out)
	}
}
