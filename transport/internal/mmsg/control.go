package mmsg

import (
	"encoding/binary"
	"math/bits"

	"golang.org/x/sys/unix"
)

// Control is a control message of the kernel: what it says beside a datagram.
type Control struct {
	Level, Kind int32
	Content     []byte
}

// NextControl takes the first control message from the front of b. Not ok: there is none that is
// whole.
func NextControl(b []byte) (c Control, rest []byte, ok bool) {
	if len(b) < unix.SizeofCmsghdr {
		return Control{}, nil, false
	}
	// struct cmsghdr: the length, of the size of a word, and two ints.
	const word = bits.UintSize / 8
	length := uint64(binary.NativeEndian.Uint32(b))
	if word == 8 {
		length = binary.NativeEndian.Uint64(b)
	}
	if length < uint64(unix.CmsgLen(0)) || length > uint64(len(b)) {
		return Control{}, nil, false
	}
	c.Level = int32(binary.NativeEndian.Uint32(b[word:]))
	c.Kind = int32(binary.NativeEndian.Uint32(b[word+4:]))
	c.Content = b[unix.CmsgLen(0):length]
	return c, b[min(unix.CmsgSpace(len(c.Content)), len(b)):], true
}
