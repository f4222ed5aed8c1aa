package udp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
)

// TestPeersAfterOne: a socket that had one peer hears one at another address, when it has two.
func TestPeersAfterOne(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	second := map[bool]netip.Addr{true: netip.MustParseAddr("10.77.0.52"), false: netip.MustParseAddr("fd77::52")} // by whether it is IPv4
	for _, ip := range second {
		pair[1].Give(t, netns.Device, ip)
	}
	for _, x := range []struct {
		at    string
		asked netip.Addr
	}{
		{"10.77.0.1", netns.IPv4(0)}, {"fd77::1", netns.IPv6(0)}, {"::", netns.IPv4(0)}, {"::", netns.IPv6(0)}, {"0.0.0.0", netns.IPv4(0)},
	} {
		var c *Conn
		pair[0].In(func() { c = listen(t, x.at, Config{}) })
		there := net.UDPAddrFromAddrPort(netip.AddrPortFrom(x.asked, c.LocalAddr().AddrPort().Port()))
		first := netns.IPv4(1)
		if x.asked.Is6() {
			first = netns.IPv6(1)
		}
		for _, from := range []netip.Addr{first, second[x.asked.Is4()], first} {
			var client net.PacketConn
			var err error
			pair[1].In(func() { client, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))) })
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.WriteTo(make([]byte, 100), there); err != nil {
				t.Fatal(err)
			}
			_, froms := collect(t, c, 1, 1)
			c.Focus(froms[0])
			if n, err := c.Send([]transport.Outgoing{outgoing(froms[0], 0, 100)}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			client.SetReadDeadline(time.Now().Add(patience))
			if _, back, err := client.ReadFrom(make([]byte, 200)); err != nil || back.String() != there.String() {
				t.Fatalf("%s: from %v, asked %v: %v", x.at, back, there, err)
			}
			c.Focus(transport.Addr{})
		}
	}
}
