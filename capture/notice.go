package capture

import (
	"encoding/binary"
	"net/netip"
)

// NoticeKind is what a Notice says.
type NoticeKind uint8

// Kinds of notices. Those of ICMP are about a packet that did not arrive.
const (
	NoPort     NoticeKind = iota // nothing listens at the port
	NoHost                       // the host is not there
	NoRoute                      // there is no route to its network
	Prohibited                   // a firewall rejects it
	TooLarge                     // it is longer than the next link carries
	Asks                         // who has an address: ARP, or its like of IPv6
	Has                          // somebody has an address
)

// Notice is what a network says of itself: ICMP of packets that did not arrive, and who asks for neighbours, and answers.
type Notice struct {
	Kind NoticeKind
	From netip.Addr // who says it
	To   netip.Addr // of ICMP: whom it tells, who sent the packet; else the address that is meant

	// Of ICMP, of the packet.
	TCP      bool           // it is of TCP, else of UDP
	Src, Dst netip.AddrPort // its ends
	Data     []byte         // what a datagram of UDP carries, as far as it is quoted
	Length   int            // what Data would be in full
	MTU      int            // if Kind is TooLarge: of the next link; 0: it is not said
}

// Notice takes off all headers of a record that is a notice. One that contradicts itself is none: with a wrong checksum, or about a packet that
// who is told has not sent. Data is that of the record.
func (r *Record) Notice() (n Notice, ok bool) {
	if !knownLinkType(r.LinkType) {
		return n, false
	}
	c := content{data: r.Data, length: r.Length}
	switch c.unwrap(r.LinkType, nil) {
	case foundARP:
		return c.arp()
	case foundICMP:
		if len(c.data) < icmpHeader || len(c.data) == c.length && !c.intact() {
			return n, false
		}
		if n, ok := c.neighbour(); ok {
			return n, true
		}
		return c.lost()
	}
	return n, false
}

const icmpHeader = 8

// intact reports whether the checksum of ICMP is right.
func (c *content) intact() bool {
	sum := ones(0, c.data)
	if src := c.src.UDP.Addr(); src.Is6() {
		sum = ones(ones(sum, src.AsSlice()), c.dst.UDP.Addr().AsSlice()) + uint64(c.length) + protoICMP6
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return sum == 0xFFFF
}

// ones adds up words of 16 bits.
func ones(sum uint64, b []byte) uint64 {
	for ; len(b) > 1; b = b[2:] {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

// single reports whether an address is of one host.
func single(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func (c *content) arp() (n Notice, ok bool) {
	const size, request, reply = 28, 1, 2
	b := c.data
	if len(b) < size || binary.BigEndian.Uint32(b) != 1<<16|etherIPv4 || b[4] != 6 || b[5] != 4 {
		return n, false
	}
	from, of := netip.AddrFrom4([4]byte(b[14:])), netip.AddrFrom4([4]byte(b[24:]))
	switch op := binary.BigEndian.Uint16(b[6:]); {
	case !single(from):
		return n, false // somebody asks whether an address is free
	case op == reply, op == request && from == of:
		return Notice{Kind: Has, From: from, To: from}, true
	case op == request && single(of):
		return Notice{Kind: Asks, From: from, To: of}, true
	}
	return n, false
}

// neighbour reads what IPv6 has for ARP.
func (c *content) neighbour() (n Notice, ok bool) {
	const size, asks, has, direct = 24, 135, 136, 255
	b, from := c.data, c.src.UDP.Addr()
	if len(b) < size || !from.Is6() || c.hops != direct || b[1] != 0 || !single(from) {
		return n, false
	}
	of := netip.AddrFrom16([16]byte(b[8:]))
	switch {
	case !single(of):
	case b[0] == asks:
		return Notice{Kind: Asks, From: from, To: of}, true
	case b[0] == has:
		return Notice{Kind: Has, From: from, To: of}, true
	}
	return n, false
}

// lost reads which packet did not arrive, and why.
func (c *content) lost() (n Notice, ok bool) {
	b := c.data
	n = Notice{From: c.src.UDP.Addr(), To: c.dst.UDP.Addr()}
	version := byte(4)
	if n.From.Is6() {
		version = 6
	}
	if n.Kind, ok = reason(version, b[0], b[1]); !ok || !single(n.From) || !single(n.To) {
		return n, false
	}
	switch {
	case n.Kind != TooLarge:
	case version == 4:
		n.MTU = int(binary.BigEndian.Uint16(b[6:]))
	default:
		n.MTU = int(min(binary.BigEndian.Uint32(b[4:]), 1<<16))
	}
	q := content{data: b[icmpHeader:], length: c.length - icmpHeader}
	switch q.ip(version) {
	case foundUDP:
		n.Src, n.Dst, n.Data, n.Length = q.src.UDP, q.dst.UDP, q.data, q.length
	case foundTCP:
		if len(q.data) < icmpHeader { // so much every ICMP has of what it quotes
			return n, false
		}
		n.TCP = true
		n.Src, n.Dst = netip.AddrPortFrom(q.src.UDP.Addr(), binary.BigEndian.Uint16(q.data)), netip.AddrPortFrom(q.dst.UDP.Addr(), binary.BigEndian.Uint16(q.data[2:]))
	default:
		return n, false
	}
	return n, n.Src.Addr() == n.To && single(n.Dst.Addr()) && n.Src.Port() != 0 && n.Dst.Port() != 0
}

// reason reads type and code of ICMP.
func reason(version, kind, code byte) (NoticeKind, bool) {
	switch of := [3]byte{version, kind, code}; of {
	case [3]byte{4, 3, 0}, [3]byte{4, 3, 6}, [3]byte{4, 3, 11}, [3]byte{6, 1, 0}, [3]byte{6, 1, 2}:
		return NoRoute, true
	case [3]byte{4, 3, 1}, [3]byte{4, 3, 7}, [3]byte{4, 3, 8}, [3]byte{4, 3, 12}, [3]byte{6, 1, 3}:
		return NoHost, true
	case [3]byte{4, 3, 3}, [3]byte{6, 1, 4}:
		return NoPort, true
	case [3]byte{4, 3, 9}, [3]byte{4, 3, 10}, [3]byte{4, 3, 13}, [3]byte{6, 1, 1}, [3]byte{6, 1, 5}, [3]byte{6, 1, 6}:
		return Prohibited, true
	case [3]byte{4, 3, 4}, [3]byte{6, 2, 0}:
		return TooLarge, true
	}
	return 0, false
}
