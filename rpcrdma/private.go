package rpcrdma

import "encoding/binary"

// Private data of connection set-up (RFC 8797).
const (
	PrivateSize = 8

	privateMagic   = 0xf6ab0e18
	privateVersion = 1
	flagInvalidate = 0x01
	privateUnit    = 1024 // a size n stands for n+1 of them
	privateUnits   = 256
)

// DefaultThreshold1 is the length of the longest Send of version 1 in either direction unless private data say otherwise.
const DefaultThreshold1 = 1024

// Private is what a side of version 1 says of itself in the private data of connection set-up. The zero value stands for
// a side that has said nothing.
type Private struct {
	// SendSize and ReceiveSize are the lengths of its longest Send and of its receives: multiples of
	// 1024 up to 256 KiB.
	SendSize, ReceiveSize int
	// Invalidate says that as a Requester it takes Send with Invalidate, of any handle that it gives.
	Invalidate bool
}

// Append writes the private data after b. Sizes that cannot be said are rounded down, or up to 1024.
func (p Private) Append(b []byte) []byte {
	var flags byte
	if p.Invalidate {
		flags = flagInvalidate
	}
	b = binary.BigEndian.AppendUint32(b, privateMagic)
	return append(b, privateVersion, flags, byte(units(p.SendSize)-1), byte(units(p.ReceiveSize)-1))
}

// units returns how much of a size can be said. The least is DefaultThreshold1.
func units(size int) int { return min(max(size/privateUnit, 1), privateUnits) }

// ParsePrivate reads private data, of which the first 8 octets count. Data that are of something else, or of another
// version of it, are as none.
func ParsePrivate(b []byte) Private {
	if len(b) < PrivateSize || binary.BigEndian.Uint32(b) != privateMagic || b[4] != privateVersion {
		return Private{}
	}
	return Private{(int(b[6]) + 1) * privateUnit, (int(b[7]) + 1) * privateUnit, b[5]&flagInvalidate != 0}
}

// Thresholds1 returns the length of the longest Send of version 1 from this side to the peer, and of that from the peer,
// from what both sides have said. A side that has said nothing counts as the least, which is the default.
func Thresholds1(local, peer Private) (send, receive int) {
	return min(units(local.SendSize), units(peer.ReceiveSize)) * privateUnit, min(units(peer.SendSize), units(local.ReceiveSize)) * privateUnit
}
