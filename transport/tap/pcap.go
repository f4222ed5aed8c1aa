package tap

import (
	"encoding/binary"
	"time"
)

// The file begins with (all little-endian)
//
//	offset  size  field
//	0       4     magic, says byte order and that times have nanoseconds
//	4       2     major version 2
//	6       2     minor version 4
//	8       8     time zone and accuracy, always 0
//	16      4     snap length
//	20      4     link type
//
// and each record with
//
//	0       4     seconds since 1970, unsigned
//	4       4     nanoseconds
//	8       4     bytes that follow
//	12      4     bytes the packet had
const (
	magicNanoseconds = 0xa1b23c4d
	linkTypeEthernet = 1
	recordHeaderSize = 16
)

func appendFileHeader(b []byte, snapLen int) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, magicNanoseconds)
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 4)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, uint32(snapLen))
	return le.AppendUint32(b, linkTypeEthernet)
}

// finishRecord cuts the packet behind the record header at start to the snap
// length and fills in the header.
func finishRecord(b []byte, start int, now time.Time, snapLen int) []byte {
	original := len(b) - start - recordHeaderSize
	kept := min(original, snapLen)
	h := b[start:]
	le := binary.LittleEndian
	le.PutUint32(h[0:], uint32(now.Unix()))
	le.PutUint32(h[4:], uint32(now.Nanosecond()))
	le.PutUint32(h[8:], uint32(kept))
	le.PutUint32(h[12:], uint32(original))
	return b[:start+recordHeaderSize+kept]
}
