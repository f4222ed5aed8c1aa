package emulator

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// checksum is that of an IPv4 header (RFC 791, 3.1); 0 where the header has the right one.
func checksum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// TestMarkIPv4 checks that a mark leaves the header's checksum right, for every traffic class.
func TestMarkIPv4(t *testing.T) {
	for class := range 256 {
		f := udp(1, 2, 3, 100)
		p := f[etherHeader:]
		p[1] = byte(class)
		binary.BigEndian.PutUint16(p[10:], checksum(p[:20]))
		if isCapable(f) != (class&3 != 0) {
			t.Errorf("class %#x: capable %v", class, isCapable(f))
		}
		mark(f)
		if p[1] != byte(class)|3 || checksum(p[:20]) != 0 {
			t.Errorf("class %#x: %#x after the mark, checksum %#x", class, p[1], checksum(p[:20]))
		}
	}
}

// sixth is an IPv6 packet of UDP.
func sixth() []byte {
	f := make([]byte, etherHeader+60)
	binary.BigEndian.PutUint16(f[12:], unix.ETH_P_IPV6)
	p := f[etherHeader:]
	p[0], p[6] = 0x60, unix.IPPROTO_UDP
	p[8], p[23], p[24], p[39] = 0xfd, 1, 0xfd, 2
	binary.BigEndian.PutUint16(p[40:], 1000)
	binary.BigEndian.PutUint16(p[42:], 2000)
	return f
}

// TestMarkIPv6 checks that the mark is in the traffic class, which begins in the middle of a byte.
func TestMarkIPv6(t *testing.T) {
	f := sixth()
	if isCapable(f) {
		t.Error("a packet without ECT can carry a mark")
	}
	f[etherHeader+1] = 0x2f // ECT(0), and a part of the flow label
	if !isCapable(f) {
		t.Error("ECT(0) is not seen")
	}
	mark(f)
	if f[etherHeader+1] != 0x3f || f[etherHeader] != 0x60 {
		t.Errorf("header %x", f[etherHeader:][:2])
	}
}

// TestKeys checks the flow of each kind of packet.
func TestKeys(t *testing.T) {
	ether := make([]byte, 64)
	binary.BigEndian.PutUint16(ether[12:], etherOther)
	second := udp(1, 2, 3, 100)
	second[etherHeader+7] = 100 // the offset of a fragment
	short := udp(1, 2, 3, 24)[:etherHeader+20]
	short[etherHeader] = 0x4f // a header that would be longer than the packet
	for name, c := range map[string]struct {
		f    []byte
		want FlowKey
	}{
		"IPv4":     {udp(1, 2, 3, 100), FlowKey{17, netip.MustParseAddrPort("10.0.0.1:3"), netip.MustParseAddrPort("10.0.0.2:7")}},
		"IPv6":     {sixth(), FlowKey{17, netip.MustParseAddrPort("[fd00::1]:1000"), netip.MustParseAddrPort("[fd00::2]:2000")}},
		"fragment": {second, FlowKey{17, netip.MustParseAddrPort("10.0.0.1:0"), netip.MustParseAddrPort("10.0.0.2:0")}},
		"short":    {short, FlowKey{17, netip.MustParseAddrPort("10.0.0.1:0"), netip.MustParseAddrPort("10.0.0.2:0")}},
		"Ethernet": {ether, FlowKey{}},
	} {
		if !isCarried(c.f) {
			t.Errorf("%s is not carried", name)
		}
		if got := keyOf(c.f); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestNeighboursPass checks that what neighbours need to find each other is no load.
func TestNeighboursPass(t *testing.T) {
	arp, solicitation, group := make([]byte, 60), sixth(), udp(1, 2, 3, 100)
	binary.BigEndian.PutUint16(arp[12:], unix.ETH_P_ARP)
	solicitation[etherHeader+6] = unix.IPPROTO_ICMPV6
	group[0] = 0x33
	for _, f := range [][]byte{arp, solicitation, group, nil, arp[:13], udp(1, 2, 3, 100)[:etherHeader+19], sixth()[:etherHeader+39]} {
		if isCarried(f) {
			t.Errorf("%x is carried", f)
		}
	}
}
