package transport

import (
	"net/netip"
	"testing"
)

func TestAddr(t *testing.T) {
	mapped := netip.MustParseAddrPort("[::ffff:10.0.0.1]:7000")
	plain := netip.MustParseAddrPort("10.0.0.1:7000")
	if UDPAddr(mapped) != UDPAddr(plain) {
		t.Error("a mapped IPv4 address differs from the address")
	}
	for _, c := range []struct {
		a    Addr
		kind Kind
		text string
	}{
		{Addr{}, KindNone, "none"},
		{UDPAddr(plain), KindUDP, "10.0.0.1:7000"},
		{UDPAddr(netip.MustParseAddrPort("[fe80::1%eth0]:9")), KindUDP, "[fe80::1%eth0]:9"},
		{EtherAddr([6]byte{2, 0, 0xab, 1, 2, 3}), KindEther, "02:00:ab:01:02:03"},
	} {
		if c.a.Kind() != c.kind || c.a.String() != c.text || c.a.IsZero() != (c.kind == KindNone) {
			t.Errorf("%v: kind %d, zero %v; want %s, %d", c.a, c.a.Kind(), c.a.IsZero(), c.text, c.kind)
		}
	}
	if a := EtherAddr([6]byte{5: 1}); a == EtherAddr([6]byte{5: 2}) || a != EtherAddr([6]byte{5: 1}) {
		t.Error("addresses do not compare")
	}
}
