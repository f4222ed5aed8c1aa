package ddp

import "encoding/binary"

// Lengths of the headers.
const (
	TaggedHeader   = 14
	UntaggedHeader = 18
)

// Bits of the first octet.
const (
	tagged      = 0x80
	last        = 0x40
	versionMask = 0x03
	version     = 1
)

// Header is the header of one segment. Fields of the other kind are 0.
type Header struct {
	Tagged bool
	Last   bool
	// Control is RDMAP's octet, which DDP passes as it is (RDMAP-007).
	Control byte

	STag uint32
	TO   uint64

	// Invalidate is what RDMAP says in its other four octets.
	Invalidate uint32
	QN         uint32
	MSN        uint32
	MO         uint32
}

// Size returns the length of the header.
func (h *Header) Size() int {
	if h.Tagged {
		return TaggedHeader
	}
	return UntaggedHeader
}

// Put writes the header to b, which has room for it, and returns its length.
func (h *Header) Put(b []byte) int {
	b[0] = version
	if h.Last {
		b[0] |= last
	}
	b[1] = h.Control
	if h.Tagged {
		_ = b[TaggedHeader-1]
		b[0] |= tagged
		binary.BigEndian.PutUint32(b[2:], h.STag)
		binary.BigEndian.PutUint64(b[6:], h.TO)
		return TaggedHeader
	}
	_ = b[UntaggedHeader-1]
	binary.BigEndian.PutUint32(b[2:], h.Invalidate)
	binary.BigEndian.PutUint32(b[6:], h.QN)
	binary.BigEndian.PutUint32(b[10:], h.MSN)
	binary.BigEndian.PutUint32(b[14:], h.MO)
	return UntaggedHeader
}

// HeaderSize returns the length of the header that begins with the octet first.
func HeaderSize(first byte) int {
	if first&tagged != 0 {
		return TaggedHeader
	}
	return UntaggedHeader
}

// Parse reads the header at the beginning of a segment. Reserved bits are ignored. The error is a
// [Fault]: a version that is not 1, or a segment too short for its header. The header is set as
// far as there are bytes, for whoever tells the peer.
func Parse(b []byte, h *Header) error {
	*h = Header{}
	if len(b) == 0 || len(b) < HeaderSize(b[0]) {
		return Malformed
	}
	h.Tagged = b[0]&tagged != 0
	h.Last = b[0]&last != 0
	h.Control = b[1]
	if h.Tagged {
		h.STag = binary.BigEndian.Uint32(b[2:])
		h.TO = binary.BigEndian.Uint64(b[6:])
	} else {
		h.Invalidate = binary.BigEndian.Uint32(b[2:])
		h.QN = binary.BigEndian.Uint32(b[6:])
		h.MSN = binary.BigEndian.Uint32(b[10:])
		h.MO = binary.BigEndian.Uint32(b[14:])
	}
	switch {
	case b[0]&versionMask == version:
		return nil
	case h.Tagged:
		return TaggedVersion
	}
	return UntaggedVersion
}
