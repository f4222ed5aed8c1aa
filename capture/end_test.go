package capture

import (
	"net/netip"
	"strings"
	"testing"
)

func TestEnds(t *testing.T) {
	udp := func(s string) Addr { return Addr{UDP: netip.MustParseAddrPort(s)} }
	mac := Addr{MAC: [6]byte{2, 0, 0, 0, 0, 10}}
	for _, c := range []struct {
		end  string
		a    Addr
		want bool
	}{
		{"10.0.0.1", udp("10.0.0.1:7100"), true},
		{"10.0.0.1", udp("[::ffff:10.0.0.1]:7100"), true},
		{"10.0.0.1", udp("10.0.0.2:7100"), false},
		{"10.0.0.1:7100", udp("10.0.0.1:7100"), true},
		{"10.0.0.1:7100", udp("10.0.0.1:7101"), false},
		{"fe80::1%eth0", udp("[fe80::1]:7100"), true},
		{"[fe80::1%eth0]:7100", udp("[fe80::1]:7100"), true},
		{"[fe80::1]:7100", udp("[fe80::1]:1"), false},
		{"0.0.0.0", mac, false},
		{"02:00:00:00:00:0A", mac, true},
		{"02-00-00-00-00-0b", mac, false},
		{"00:00:00:00:00:00", udp("10.0.0.1:7100"), false},
	} {
		e, err := ParseEnd(c.end)
		if err != nil || e.Is(c.a) != c.want {
			t.Errorf("%s is %v: %v, want %v; %v", c.end, c.a, !c.want, c.want, err)
		}
	}
	for _, s := range []string{"", "host", "10.0.0", "10.0.0.1:", "10.0.0.1:70000", "02:00:00:00:00"} {
		if got, err := ParseEnd(s); err == nil || !strings.Contains(err.Error(), "hardware address") {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}
