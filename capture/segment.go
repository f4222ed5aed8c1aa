package capture

import (
	"encoding/binary"
	"net/netip"
)

// Flags of a segment of TCP.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	ACK = 0x10
)

// Segment is a segment of TCP, or what a host with offload recorded as one.
type Segment struct {
	Src, Dst netip.AddrPort
	Seq, Ack uint32
	Flags    uint8
	Window   uint16 // as it is in the header, not scaled
	Data     []byte // to the end of what was captured
	Length   int    // what Data would have without a snap length
}

// HasCutSegment reports whether the record is a segment of TCP of which not even the header was captured whole.
func (r *Record) HasCutSegment() bool {
	if len(r.Data) >= r.Length || !knownLinkType(r.LinkType) {
		return false
	}
	c := content{data: r.Data, length: r.Length}
	return c.unwrap(r.LinkType, nil) == foundTCP && len(c.data) < leastTCP && c.length >= leastTCP
}

// leastTCP is the length of a header of TCP without options.
const leastTCP = 20

// Segment takes off all headers of a record that is a segment of TCP. Of one in fragments of IP it sees the first. Data is that of the record.
func (r *Record) Segment() (s Segment, ok bool) {
	if !knownLinkType(r.LinkType) {
		return s, false
	}
	c := content{data: r.Data, length: r.Length}
	if c.unwrap(r.LinkType, nil) != foundTCP {
		return s, false
	}
	if len(c.data) < leastTCP {
		return s, false
	}
	size := int(c.data[12]>>4) * 4
	if size < leastTCP || size > c.length {
		return s, false
	}
	h := c.data
	s = Segment{
		Src: netip.AddrPortFrom(c.src.UDP.Addr(), binary.BigEndian.Uint16(h)), Dst: netip.AddrPortFrom(c.dst.UDP.Addr(), binary.BigEndian.Uint16(h[2:])),
		Seq: binary.BigEndian.Uint32(h[4:]), Ack: binary.BigEndian.Uint32(h[8:]), Flags: h[13], Window: binary.BigEndian.Uint16(h[14:]),
		Length: c.length - size,
	}
	if len(c.data) > size { // else options, or more, were cut off
		s.Data = c.data[size:min(len(c.data), size+s.Length)]
	}
	return s, true
}
