package frame

import (
	"encoding/binary"
	"hash/crc32"
)

// FlagChecksum is set in [Header.Flags] by peers of our own kind: the frame ends with a checksum.
// To all others, who ignore the reserved bits, that is link padding.
//
//	offset from the end  size  field
//	4                    4     CRC32C of all bytes before it, the header with its flags included
//
// With it a frame has at least 46 bytes, zeros before the checksum make up what is missing: to
// shorter ones Ethernet adds bytes, and nobody says how many.
//
// CRC32C has the polynomial 0x1edc6f41 and is reflected, begins at all ones and is inverted in the
// end, as in iSCSI and SCTP (RFC 9260, appendix A).
const FlagChecksum = 2

const (
	// ChecksumSize is the length of a checksum in bytes.
	ChecksumSize = 4

	leastChecked = 46 // the least payload of Ethernet
	countAt      = 8
	flagsAt      = 9
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CheckedSize returns how long a frame of so many bytes is with its checksum.
func CheckedSize(size int) int { return max(size+ChecksumSize, leastChecked) }

// AddChecksum adds a checksum to the frame b, behind which there is room up to [CheckedSize].
func AddChecksum(b []byte) []byte {
	size := CheckedSize(len(b))
	end := size - ChecksumSize
	clear(b[len(b):end])
	b = b[:size]
	PutChecksum(b[:end], nil, b[end:])
	return b
}

// PutChecksum writes the checksum of a frame that consists of head and rest, which may be empty,
// to the first ChecksumSize bytes of sum.
func PutChecksum(head, rest, sum []byte) {
	head[flagsAt] |= FlagChecksum
	c := crc32.Update(0, castagnoli, head)
	if len(rest) > 0 {
		c = crc32.Update(c, castagnoli, rest)
	}
	binary.LittleEndian.PutUint32(sum, c)
}

// HasChecksum reports whether b says of itself that it ends with a checksum. With other bits that are reserved
// b is something else, a sealed frame for one.
func HasChecksum(b []byte) bool {
	if len(b) < HeaderSize {
		return false
	}
	flags := b[flagsAt]
	return flags&^FlagMessages == FlagChecksum || flags&FlagChecksum != 0 && IsSession(b)
}

// Checksum is what a frame says of itself.
type Checksum uint8

const (
	NoChecksum Checksum = iota // nothing
	RightChecksum
	WrongChecksum
)

// SplitChecksum returns what b, all of a frame, holds before its checksum, if its header says that it
// has one, and whether that is right.
func SplitChecksum(b []byte) ([]byte, Checksum) {
	if !HasChecksum(b) || len(b) < leastChecked {
		return b, NoChecksum
	}
	if checked, ok := CutChecksum(b); ok {
		return checked, RightChecksum
	}
	return b[:len(b)-ChecksumSize], WrongChecksum
}

// CutChecksum returns the bytes before the checksum with which b ends. Not ok: it is wrong.
func CutChecksum(b []byte) (checked []byte, ok bool) {
	end := len(b) - ChecksumSize
	if end < HeaderSize || crc32.Update(0, castagnoli, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, false
	}
	return b[:end:end], true
}
