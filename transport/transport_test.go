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

// TestLocal: who asks another address of ours is another one, at the same host, and is called the
// same.
func TestLocal(t *testing.T) {
	a := UDPAddr(netip.MustParseAddrPort("10.0.0.1:7000"))
	one, two := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fe80::1%eth0")
	if a.Local().IsValid() || a.WithLocal(one).Local() != one || a.WithLocal(two).WithLocal(netip.Addr{}) != a {
		t.Error("it has not the address that it was given")
	}
	all := map[string]bool{}
	for _, x := range []Addr{
		a, a.WithLocal(one), a.WithLocal(two), a.Host(), UDPAddr(netip.AddrPortFrom(one, 7000)), UDPAddr(netip.AddrPortFrom(one, 7000)).WithLocal(a.AddrPort().Addr()),
		UDPAddr(netip.AddrPortFrom(two, 7000)), EtherAddr([6]byte{2}), EtherAddr([6]byte{5: 2}), {},
	} {
		if b := string(x.Append(nil)); all[b] {
			t.Errorf("%v has the binary form of another one", x)
		} else {
			all[b] = true
		}
	}
	if b := a.WithLocal(one); b == a || b != a.WithLocal(one) || b.Host() != a.Host() || b.String() != a.String() {
		t.Errorf("%v and %v", a, b)
	}
	six, every := UDPAddr(netip.MustParseAddrPort("[fd00::1]:7")), UDPAddr(netip.MustParseAddrPort("[::]:7"))
	ether := EtherAddr([6]byte{2})
	nowhere := UDPAddr(netip.AddrPortFrom(six.AddrPort().Addr(), 0))
	if every.Sends(nowhere) || six.Sends(nowhere) || !UDPAddr(netip.MustParseAddrPort("[::]:0")).Sends(six) {
		t.Error("who sends to port 0")
	}
	if !every.Sends(a) || !every.Sends(six) || every.Sends(ether) || a.Sends(six) || six.Sends(a) || EtherAddr([6]byte{}).Sends(a) {
		t.Error("who sends to whom")
	}
}
