package udp

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// TestAsReceived: a peer is known by its address as datagrams from it have that, whichever way
// its interface was named.
func TestAsReceived(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Skip("no interface:", err)
	}
	x := all[0]
	for _, c := range []struct{ from, want string }{
		{"10.0.0.1:1", "10.0.0.1:1"},
		{"[fe80::1]:1", "[fe80::1]:1"},
		{fmt.Sprintf("[fe80::1%%%d]:1", x.Index), fmt.Sprintf("[fe80::1%%%s]:1", x.Name)},
		{fmt.Sprintf("[fe80::1%%%s]:1", x.Name), fmt.Sprintf("[fe80::1%%%s]:1", x.Name)},
		{"[fe80::1%nosuch]:1", "[fe80::1%nosuch]:1"},
		{fmt.Sprintf("[fd00::1%%%s]:1", x.Name), "[fd00::1]:1"},
	} {
		if got := AsReceived(netip.MustParseAddrPort(c.from)); got.String() != c.want {
			t.Errorf("%s is %v, want %s", c.from, got, c.want)
		}
	}
}
