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

// Segment takes off all headers of a record that is a segment of TCP. Of one in fragments of IP it sees the first. Data is that of the record.
func (r *Record) Segment() (s Segment, ok bool) {
	if !knownLinkType(r.LinkType) {
		return s, false
	}
	c := content{data: r.Data, length: r.Length}
	if c.unwrap(r.LinkType, nil) != foundTCP {
		return s, false
	}
	const least = 20
	if len(c.data) < least {
		return s, false
	}
	size := int(c.data[12]>>4) * 4
	if size < least || size > c.length {
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
