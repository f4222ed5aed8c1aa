package tap

import (
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/dgrdma/dgrdma/transport"
)

const (
	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd

	ipv4HeaderSize = 20
	udpHeaderSize  = 8
	udpPrefixSize  = 2 // in front of the frame header; its value means nothing

	protocolUDP  = 17
	hopLimit     = 64
	dontFragment = 0x4000
)

// appendPacket appends a frame with the headers it would have on a wire between
// the addresses.
func appendPacket(b []byte, from, to transport.Addr, etherType uint16, frame []byte) []byte {
	if from.Kind() == transport.KindUDP && to.Kind() == transport.KindUDP {
		src, dst := from.AddrPort(), to.AddrPort()
		srcIP, dstIP := sameFamily(src.Addr(), dst.Addr())
		return appendUDPPacket(b, netip.AddrPortFrom(srcIP, src.Port()), netip.AddrPortFrom(dstIP, dst.Port()), frame)
	}
	b = appendEthernet(b, hardwareAddr(from), hardwareAddr(to), etherType)
	return append(b, frame...)
}

func appendEthernet(b []byte, src, dst [6]byte, etherType uint16) []byte {
	b = append(b, dst[:]...)
	b = append(b, src[:]...)
	return binary.BigEndian.AppendUint16(b, etherType)
}

// hardwareAddr makes up a MAC address where a has none: locally administered,
// and with the number readable in it.
func hardwareAddr(a transport.Addr) [6]byte {
	mac := [6]byte{0: 0x02}
	switch a.Kind() {
	case transport.KindEther:
		return a.MAC()
	case transport.KindUDP:
		ip := a.AddrPort().Addr().As16() // IPv4 is at the end
		copy(mac[2:], ip[12:])
	}
	return mac
}

// sameFamily makes two addresses fit one IP header: an unspecified one takes
// the family of the other, else IPv4 is mapped into IPv6.
func sameFamily(a, b netip.Addr) (netip.Addr, netip.Addr) {
	if !a.IsValid() {
		a = netip.IPv6Unspecified()
	}
	if !b.IsValid() {
		b = netip.IPv6Unspecified()
	}
	switch {
	case a.Is4() == b.Is4():
		return a, b
	case a.IsUnspecified():
		return unspecifiedLike(b), b
	case b.IsUnspecified():
		return a, unspecifiedLike(a)
	}
	return netip.AddrFrom16(a.As16()), netip.AddrFrom16(b.As16())
}

func unspecifiedLike(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func appendUDPPacket(b []byte, src, dst netip.AddrPort, frame []byte) []byte {
	srcMAC, dstMAC := hardwareAddr(transport.UDPAddr(src)), hardwareAddr(transport.UDPAddr(dst))
	udpSize := udpHeaderSize + udpPrefixSize + len(frame)
	var pseudo uint32 // sum over the addresses, for the UDP checksum
	if src.Addr().Is4() {
		b = appendEthernet(b, srcMAC, dstMAC, etherTypeIPv4)
		b = appendIPv4(b, src.Addr().As4(), dst.Addr().As4(), udpSize)
		pseudo = sum(b[len(b)-8:], 0)
	} else {
		b = appendEthernet(b, srcMAC, dstMAC, etherTypeIPv6)
		b = appendIPv6(b, src.Addr().As16(), dst.Addr().As16(), udpSize)
		pseudo = sum(b[len(b)-32:], 0)
	}
	start := len(b)
	be := binary.BigEndian
	b = be.AppendUint16(b, src.Port())
	b = be.AppendUint16(b, dst.Port())
	b = be.AppendUint16(b, lengthField(udpSize))
	b = append(b, 0, 0) // checksum, below
	b = append(b, make([]byte, udpPrefixSize)...)
	b = append(b, frame...)
	pseudo += protocolUDP + uint32(udpSize>>16) + uint32(udpSize&0xffff)
	checksum := ^fold(sum(b[start:], pseudo))
	if checksum == 0 {
		checksum = 0xffff // 0 would mean that there is none
	}
	be.PutUint16(b[start+6:], checksum)
	return b
}

func appendIPv4(b []byte, src, dst [4]byte, payload int) []byte {
	start := len(b)
	be := binary.BigEndian
	b = append(b, 0x45, 0) // version 4, 5 words; no service class
	b = be.AppendUint16(b, lengthField(ipv4HeaderSize+payload))
	b = be.AppendUint16(b, 0) // identification, unused without fragments
	b = be.AppendUint16(b, dontFragment)
	b = append(b, hopLimit, protocolUDP, 0, 0)
	b = append(b, src[:]...)
	b = append(b, dst[:]...)
	be.PutUint16(b[start+10:], ^fold(sum(b[start:], 0)))
	return b
}

func appendIPv6(b []byte, src, dst [16]byte, payload int) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, 6<<28) // version; no class, no flow
	b = be.AppendUint16(b, lengthField(payload))
	b = append(b, protocolUDP, hopLimit)
	b = append(b, src[:]...)
	return append(b, dst[:]...)
}

func lengthField(n int) uint16 {
	if n > math.MaxUint16 {
		return 0
	}
	return uint16(n)
}

// sum adds up b as 16-bit words for the Internet checksum (RFC 1071), starting
// from s. It folds all the time, so that no length overflows.
func sum(b []byte, s uint32) uint32 {
	for len(b) >= 2 {
		s += uint32(b[0])<<8 | uint32(b[1])
		s = s&0xffff + s>>16
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return uint32(fold(s))
}

func fold(s uint32) uint16 {
	s = s&0xffff + s>>16
	return uint16(s&0xffff + s>>16)
}
