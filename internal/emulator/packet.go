package emulator

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	etherHeader = 14
	etherOther  = 0xF042 // DG/RDMA frames
	ecnMask     = 3      // the last bits of the traffic class (RFC 3168, section 5)
)

// FlowKey says which packets are of one flow: those of the same direction between two ports.
type FlowKey struct {
	Protocol uint8 // of IP; 0: another frame
	From, To netip.AddrPort
}

// isCarried reports whether a frame is part of the path's load. Others help neighbours to find each other.
func isCarried(f []byte) bool {
	const group = 1 // in the first byte of a destination
	if len(f) < etherHeader || f[0]&group != 0 {
		return false
	}
	switch binary.BigEndian.Uint16(f[12:]) {
	case unix.ETH_P_IP:
		return len(f) >= etherHeader+20
	case unix.ETH_P_IPV6:
		return len(f) >= etherHeader+40 && f[etherHeader+6] != unix.IPPROTO_ICMPV6
	case etherOther:
		return true
	}
	return false
}

// keyOf returns the flow of a frame that is carried. Ports are 0 where there are none.
func keyOf(f []byte) (k FlowKey) {
	p := f[etherHeader:]
	var from, to netip.Addr
	next := len(p)
	switch binary.BigEndian.Uint16(f[12:]) {
	case unix.ETH_P_IP:
		from, to = netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
		k.Protocol, next = p[9], int(p[0]&15)*4
		if binary.BigEndian.Uint16(p[6:])&0x1fff != 0 {
			next = len(p) // a fragment after the first has no ports
		}
	case unix.ETH_P_IPV6:
		from, to = netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
		k.Protocol, next = p[6], 40
	}
	var ports [2]uint16
	if (k.Protocol == unix.IPPROTO_TCP || k.Protocol == unix.IPPROTO_UDP) && next+4 <= len(p) {
		ports = [2]uint16{binary.BigEndian.Uint16(p[next:]), binary.BigEndian.Uint16(p[next+2:])}
	}
	k.From, k.To = netip.AddrPortFrom(from, ports[0]), netip.AddrPortFrom(to, ports[1])
	return k
}

// isCapable reports whether a frame can carry ECN's mark (RFC 3168, section 5).
func isCapable(f []byte) bool {
	switch binary.BigEndian.Uint16(f[12:]) {
	case unix.ETH_P_IP:
		return f[etherHeader+1]&ecnMask != 0
	case unix.ETH_P_IPV6:
		return f[etherHeader+1]>>4&ecnMask != 0
	}
	return false
}

// mark gives a frame that is capable ECN's mark.
func mark(f []byte) {
	p := f[etherHeader:]
	if binary.BigEndian.Uint16(f[12:]) == unix.ETH_P_IPV6 {
		p[1] |= ecnMask << 4
		return
	}
	before := binary.BigEndian.Uint16(p)
	p[1] |= ecnMask
	// The checksum follows the change of one word (RFC 1624, equation 3).
	sum := uint32(^binary.BigEndian.Uint16(p[10:])) + uint32(^before) + uint32(binary.BigEndian.Uint16(p))
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum))
}
