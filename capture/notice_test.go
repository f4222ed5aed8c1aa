package capture

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/capture/capturetest"
)

// lost4 is ICMP of 10.0.0.9 to 10.0.0.1, about a packet.
func lost4(t testing.TB, kind, code byte, mtu uint16, quoted []byte) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: []byte{10, 0, 0, 9}, DstIP: []byte{10, 0, 0, 1}}
	return capturetest.Serialize(t, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, code), Seq: mtu}, gopacket.Payload(quoted))
}

// icmp6 is ICMP of fd00::9 to fd00::1, from its first byte on, without its checksum.
func icmp6(t testing.TB, hops byte, b ...byte) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: hops, NextHeader: layers.IPProtocolICMPv6, SrcIP: netip.MustParseAddr("fd00::9").AsSlice(), DstIP: netip.MustParseAddr("fd00::1").AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(b[0], b[1])}
	if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	return capturetest.Serialize(t, ip, icmp, gopacket.Payload(b[4:]))
}

// arp asks, or answers.
func arp(op byte, from, of [4]byte) []byte {
	b := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, 1}
	b = append(append(b, from[:]...), 2, 0, 0, 0, 0, 2)
	return append(append(b, of[:]...), make([]byte, 18)...) // Ethernet has no shorter ones
}

// asks6 asks for a neighbour, or answers.
func asks6(t testing.TB, hops, kind byte, of string) []byte {
	return icmp6(t, hops, append([]byte{kind, 0, 0, 0, 0, 0, 0, 0}, netip.MustParseAddr(of).AsSlice()...)...)
}

// notices are packets that say something, and some that do not, with what that is.
func notices(t testing.TB) map[string]struct {
	link int
	b    []byte
	want Notice
	ok   bool
} {
	type row = struct {
		link int
		b    []byte
		want Notice
		ok   bool
	}
	payload := gopacket.Payload("a datagram")
	udp4 := capturetest.Serialize(t, capturetest.IPv4(), capturetest.UDP(), payload)
	udp6 := capturetest.Serialize(t, capturetest.IPv6(), capturetest.UDP(), payload)
	tcp4 := slices.Clone(udp4[:28])
	tcp4[9] = protoTCP
	other := slices.Clone(udp4)
	other[15] = 77
	many := slices.Clone(udp4)
	many[16] = 224
	fragment := slices.Clone(udp4)
	fragment[7] = 1
	addr, end := netip.MustParseAddr, netip.MustParseAddrPort
	lost := func(kind NoticeKind) Notice {
		return Notice{Kind: kind, From: addr("10.0.0.9"), To: addr("10.0.0.1"), Src: end("10.0.0.1:40001"), Dst: end("10.0.0.2:40002"), Data: payload, Length: len(payload)}
	}
	lost6 := func(kind NoticeKind) Notice {
		return Notice{Kind: kind, From: addr("fd00::9"), To: addr("fd00::1"), Src: end("[fd00::1]:40001"), Dst: end("[fd00::2]:40002"), Data: payload, Length: len(payload)}
	}
	with := func(n Notice, change func(*Notice)) Notice { change(&n); return n }
	about6 := func(kind, code byte, mtu uint32) []byte {
		b := binary.BigEndian.AppendUint32([]byte{kind, code, 0, 0}, mtu)
		return icmp6(t, 64, append(b, udp6...)...)
	}
	all := map[string]row{
		"of TCP":          {101, lost4(t, 3, 3, 0, tcp4), with(lost(NoPort), func(n *Notice) { n.TCP, n.Data, n.Length = true, nil, 0 }), true},
		"ports alone":     {101, lost4(t, 3, 3, 0, udp4[:28]), with(lost(NoPort), func(n *Notice) { n.Data = []byte{} }), true},
		"too large":       {101, lost4(t, 3, 4, 1400, udp4), with(lost(TooLarge), func(n *Notice) { n.MTU = 1400 }), true},
		"too large, IPv6": {101, about6(2, 0, 1400), with(lost6(TooLarge), func(n *Notice) { n.MTU = 1400 }), true},
		"Ethernet":        {1, append(append(make([]byte, 12), 8, 0), append(lost4(t, 3, 3, 0, udp4), "trailer"...)...), lost(NoPort), true},
		"ARP asks":        {1, arp(1, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 77}), Notice{Kind: Asks, From: addr("10.0.0.1"), To: addr("10.0.0.77")}, true},
		"ARP answers":     {1, arp(2, [4]byte{10, 0, 0, 77}, [4]byte{10, 0, 0, 1}), Notice{Kind: Has, From: addr("10.0.0.77"), To: addr("10.0.0.77")}, true},
		"ARP announces":   {1, arp(1, [4]byte{10, 0, 0, 77}, [4]byte{10, 0, 0, 77}), Notice{Kind: Has, From: addr("10.0.0.77"), To: addr("10.0.0.77")}, true},
		"IPv6 asks":       {101, asks6(t, 255, 135, "fd00::77"), Notice{Kind: Asks, From: addr("fd00::9"), To: addr("fd00::77")}, true},
		"IPv6 answers":    {101, asks6(t, 255, 136, "fd00::77"), Notice{Kind: Has, From: addr("fd00::9"), To: addr("fd00::77")}, true},

		"ARP, whether it is free": {1, arp(1, [4]byte{}, [4]byte{10, 0, 0, 77}), Notice{}, false},
		"ARP of another network":  {1, capturetest.PatchByte(arp(1, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 77}), 14+5, 6), Notice{}, false},
		"IPv6 asks from afar":     {101, asks6(t, 64, 135, "fd00::77"), Notice{}, false},
		"IPv6 asks for many":      {101, asks6(t, 255, 135, "ff02::1"), Notice{}, false},
		"ping":                    {101, lost4(t, 8, 0, 0, udp4), Notice{}, false},
		"took too long":           {101, lost4(t, 11, 0, 0, udp4), Notice{}, false},
		"checksum":                {101, capturetest.PatchByte(lost4(t, 3, 3, 0, udp4), 30, 1), Notice{}, false},
		"checksum, IPv6":          {101, capturetest.PatchByte(about6(1, 4, 0), 50, 1), Notice{}, false},
		"who has not sent it":     {101, lost4(t, 3, 3, 0, other), Notice{}, false},
		"to many":                 {101, lost4(t, 3, 3, 0, many), Notice{}, false},
		"a later fragment":        {101, lost4(t, 3, 3, 0, fragment), Notice{}, false},
		"without ports":           {101, lost4(t, 3, 3, 0, udp4[:24]), Notice{}, false},
		"about itself":            {101, lost4(t, 3, 3, 0, lost4(t, 3, 3, 0, udp4)), Notice{}, false},
		"the other version":       {101, lost4(t, 3, 3, 0, udp6), Notice{}, false},
		"a datagram":              {101, udp4, Notice{}, false},
	}
	for name, codes := range map[string]struct {
		kind NoticeKind
		four []byte
		six  []byte // of IPv6
	}{
		"no route": {NoRoute, []byte{0, 6, 11}, []byte{0, 2}}, "no host": {NoHost, []byte{1, 7, 8, 12}, []byte{3}}, "no port": {NoPort, []byte{3}, []byte{4}},
		"prohibited": {Prohibited, []byte{9, 10, 13}, []byte{1, 5, 6}},
	} {
		for _, code := range codes.four {
			all[name+", "+string('a'+rune(code))] = row{101, lost4(t, 3, code, 0, udp4), lost(codes.kind), true}
		}
		for _, code := range codes.six {
			all[name+", IPv6, "+string('a'+rune(code))] = row{101, about6(1, code, 0), lost6(codes.kind), true}
		}
	}
	return all
}

func TestNotices(t *testing.T) {
	for name, c := range notices(t) {
		r := Record{LinkType: c.link, Data: c.b, Length: len(c.b)}
		n, ok := r.Notice()
		same := n.Kind == c.want.Kind && n.From == c.want.From && n.To == c.want.To && n.TCP == c.want.TCP && n.Src == c.want.Src && n.Dst == c.want.Dst &&
			string(n.Data) == string(c.want.Data) && n.Length == c.want.Length && n.MTU == c.want.MTU
		if ok != c.ok || ok && !same {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, n, ok, c.want, c.ok)
		}
		for short := range c.b { // a snap length leaves what is there, or nothing
			r := Record{LinkType: c.link, Data: c.b[:short:short], Length: len(c.b)}
			if n, ok := r.Notice(); ok && c.ok && (n.Kind != c.want.Kind || n.Src != c.want.Src || n.Dst != c.want.Dst) {
				t.Errorf("%s, of which %d bytes are there: %+v, %v; want %+v", name, short, n, ok, c.want)
			}
		}
	}
}

// FuzzNotice: whatever is in a packet, a notice is of single hosts, and of ICMP about a packet of who is told.
func FuzzNotice(f *testing.F) {
	for _, c := range notices(f) {
		f.Add(c.link, c.b, len(c.b))
		f.Add(c.link, c.b[:len(c.b)-9], len(c.b))
	}
	f.Fuzz(func(t *testing.T, link int, b []byte, length int) {
		r := Record{LinkType: link, Data: b, Length: max(length, len(b))}
		n, ok := r.Notice()
		switch {
		case !ok:
		case !single(n.From) || !single(n.To) || n.MTU < 0 || n.MTU > 1<<16:
			t.Fatalf("%+v", n)
		case n.Kind == Asks || n.Kind == Has:
			if n.Dst.IsValid() || n.Data != nil {
				t.Fatalf("%+v", n)
			}
		case n.Kind > TooLarge || n.Src.Addr() != n.To || !single(n.Dst.Addr()) || n.Dst.Port() == 0 || len(n.Data) > max(n.Length, 0):
			t.Fatalf("%+v", n)
		}
	})
}
