package capture

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Addr is one end of a packet: over UDP an address and a port, on Ethernet a
// hardware address. It can be compared, and be the key of a map.
type Addr struct {
	UDP netip.AddrPort // not valid on Ethernet
	MAC [6]byte        // zero over UDP
}

func (a Addr) String() string {
	if a.UDP.IsValid() {
		return a.UDP.String()
	}
	return net.HardwareAddr(a.MAC[:]).String()
}

// Link types, numbered as in capture files.
const (
	linkUnknown  = -1 // of an interface
	linkNull     = 0
	linkEthernet = 1
	linkRawBSD   = 12
	linkRawOpen  = 14
	linkRaw      = 101
	linkLoop     = 108
	linkCooked   = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkCooked2  = 276
)

// Ethernet types, and numbers of IP protocols.
const (
	etherIPv4    = 0x0800
	etherARP     = 0x0806
	etherIPv6    = 0x86DD
	etherVLAN    = 0x8100
	etherQinQ    = 0x88A8
	etherQinQOld = 0x9100

	protoHopByHop = 0
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoAuth     = 51
	protoICMP6    = 58
	protoOptions  = 60
)

// Cooked reports whether a record has the header that Linux puts before the packets of its interface "any", on which a packet may pass several times.
func (r *Record) Cooked() bool { return r.LinkType == linkCooked || r.LinkType == linkCooked2 }

func knownLinkType(t int) bool {
	switch t {
	case linkNull, linkEthernet, linkRawBSD, linkRawOpen, linkRaw, linkLoop, linkCooked, linkIPv4, linkIPv6, linkCooked2:
		return true
	}
	return false
}

type finding uint8

const (
	foundOther finding = iota
	foundEther
	foundUDP
	foundTCP // src and dst have no ports yet
	foundFragment
	foundICMP // of the version that the addresses have; src and dst have no ports
	foundARP
)

// content is what is left of a packet while its headers are taken off.
type content struct {
	src, dst Addr
	data     []byte
	length   int  // of data, on the wire
	hops     byte // that IPv6 would still let it go
}

// take removes n bytes from the front.
func (c *content) take(n int) ([]byte, bool) {
	if n > len(c.data) {
		return nil, false
	}
	head := c.data[:n]
	c.data, c.length = c.data[n:], c.length-n
	return head, true
}

// limit drops what lies behind n bytes.
func (c *content) limit(n int) {
	c.data, c.length = c.data[:min(n, len(c.data))], min(n, c.length)
}

// unwrap takes off all headers, up to that of an Ethernet frame of the protocol, or
// that of UDP; of what TCP carries, up to that of IP. Without a protocol no Ethernet frame is its.
func (c *content) unwrap(linkType int, protocol Recogniser) finding {
	var kind uint16
	switch linkType {
	case linkEthernet:
		h, ok := c.take(14)
		if !ok {
			return foundOther
		}
		c.dst.MAC, c.src.MAC = [6]byte(h), [6]byte(h[6:])
		kind = binary.BigEndian.Uint16(h[12:])
	case linkCooked:
		h, ok := c.take(16)
		if !ok {
			return foundOther
		}
		c.src.MAC = [6]byte(h[6:])
		kind = binary.BigEndian.Uint16(h[14:])
	case linkCooked2:
		h, ok := c.take(20)
		if !ok {
			return foundOther
		}
		c.src.MAC = [6]byte(h[12:])
		kind = binary.BigEndian.Uint16(h)
	case linkNull, linkLoop:
		if _, ok := c.take(4); !ok {
			return foundOther
		}
		return c.ip(0)
	default:
		return c.ip(0)
	}
	for {
		if protocol != nil && protocol.Ethernet(kind) {
			return foundEther
		}
		switch kind {
		case etherVLAN, etherQinQ, etherQinQOld:
			tag, ok := c.take(4)
			if !ok {
				return foundOther
			}
			kind = binary.BigEndian.Uint16(tag[2:])
		case etherIPv4:
			return c.ip(4)
		case etherIPv6:
			return c.ip(6)
		case etherARP:
			return foundARP
		default:
			return foundOther
		}
	}
}

// ip goes on by the version in the header. Where the type in front of it says which that has
// to be, no receiver takes another.
func (c *content) ip(want byte) finding {
	c.src, c.dst = Addr{}, Addr{}
	if len(c.data) == 0 {
		return foundOther
	}
	switch version := c.data[0] >> 4; {
	case want != 0 && version != want:
		return foundOther
	case version == 4:
		return c.ipv4()
	case version == 6:
		return c.ipv6()
	}
	return foundOther
}

func (c *content) ipv4() finding {
	if len(c.data) < 20 {
		return foundOther
	}
	size := int(c.data[0]&15) * 4
	// The sender's own capture of a packet to be segmented may say 0.
	if total := int(binary.BigEndian.Uint16(c.data[2:])); total != 0 {
		if total < size {
			return foundOther
		}
		c.limit(total)
	}
	h, ok := c.take(size)
	if !ok || size < 20 {
		return foundOther
	}
	return c.transport(h[9], binary.BigEndian.Uint16(h[6:])&0x1FFF != 0, netip.AddrFrom4([4]byte(h[12:])), netip.AddrFrom4([4]byte(h[16:])))
}

func (c *content) ipv6() finding {
	h, ok := c.take(40)
	if !ok {
		return foundOther
	}
	if n := int(binary.BigEndian.Uint16(h[4:])); n != 0 {
		c.limit(n)
	}
	src, dst := netip.AddrFrom16([16]byte(h[8:])), netip.AddrFrom16([16]byte(h[24:]))
	c.hops = h[7]
	for next := h[6]; ; {
		if next == protoUDP || next == protoTCP || next == protoICMP6 {
			return c.transport(next, false, src, dst)
		}
		if len(c.data) < 8 {
			return foundOther
		}
		size := (int(c.data[1]) + 1) * 8
		switch next {
		case protoHopByHop, protoRouting, protoOptions:
		case protoAuth:
			size = (int(c.data[1]) + 2) * 4
		case protoFragment:
			size = 8
			if offset := binary.BigEndian.Uint16(c.data[2:]) & 0xFFF8; offset != 0 {
				return foundFragment
			}
		default:
			return foundOther
		}
		next = c.data[0]
		if _, ok := c.take(size); !ok {
			return foundOther
		}
	}
}

// transport goes on with what IP carries; later is not its first fragment.
func (c *content) transport(proto byte, later bool, src, dst netip.Addr) finding {
	icmp := proto == protoICMP && src.Is4() || proto == protoICMP6 && src.Is6()
	if !later && (proto == protoTCP || icmp) {
		c.src.UDP, c.dst.UDP = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	}
	switch {
	case proto == protoTCP && !later:
		return foundTCP
	case icmp && !later:
		return foundICMP
	case proto != protoUDP:
		return foundOther
	case later:
		return foundFragment
	}
	return c.udp(src, dst)
}

func (c *content) udp(src, dst netip.Addr) finding {
	h, ok := c.take(8)
	if !ok {
		return foundOther
	}
	c.src.UDP = netip.AddrPortFrom(src, binary.BigEndian.Uint16(h))
	c.dst.UDP = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(h[2:]))
	if n := int(binary.BigEndian.Uint16(h[4:])); n != 0 { // 0: more than fits the field
		if n -= 8; n < 0 {
			return foundOther
		}
		c.limit(n)
		c.length = n // even if the rest is in other fragments
	}
	return foundUDP
}
