package udp

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestReportsOfPaths checks what the kernel is told to do with reports of a narrower path (F12): IPv6 notes none, and IPv4 believes
// none for the socket, while packets are never fragmented.
func TestReportsOfPaths(t *testing.T) {
	v4, v6 := [3]int{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE}, [3]int{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_INTERFACE}
	for at, want := range map[string][][3]int{"127.0.0.1": {v4}, "0.0.0.0": {v4}, "::1": {v6}, "::": {v4, v6}} {
		c := listen(t, at, Config{})
		c.socket.Control(func(fd int) error {
			for _, o := range want {
				if got, err := unix.GetsockoptInt(fd, o[0], o[1]); err != nil || got != o[2] {
					t.Errorf("at %s: option %d of level %d is %d, %v, want %d", at, o[1], o[0], got, err, o[2])
				}
			}
			return nil
		})
	}
}

// TestWayTo checks that a way is as wide as the interface and the route say, from whatever address.
func TestWayTo(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 4000)
	pair[0].SetRouteMTU(t, netns.IPv6(1), 2000)
	pair[0].In(func() {
		for _, c := range []struct {
			from, to netip.Addr
			device   string
			mtu      int
		}{
			{netip.Addr{}, netns.IPv4(1), netns.Device, 4000},
			{netip.IPv6Unspecified(), netns.IPv4(1), netns.Device, 4000},
			{netns.IPv4(0), netns.IPv4(1), netns.Device, 4000},
			{netip.Addr{}, netns.IPv6(1), netns.Device, 2000},
			{netns.IPv6(0), netns.IPv6(1), netns.Device, 2000},
			{netip.Addr{}, netns.IPv4(0), "lo", 65535},
			{netip.Addr{}, netip.IPv6Loopback(), "lo", 65535},
		} {
			ifi, mtu, err := WayTo(c.from, c.to)
			if err != nil || ifi.Name != c.device || mtu != c.mtu {
				t.Errorf("from %v to %v: %d at %v, %v, want %d at %s", c.from, c.to, mtu, ifi, err, c.mtu, c.device)
			}
		}
	})
}
