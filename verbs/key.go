package verbs

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// KeySize is the length of a [Key] in bytes.
const KeySize = 16

// Key is what a peer needs to reach memory of this side: it is made by [Region.Key] or [Window.Key] and travels in
// private data, or in a Send. Its bytes are those that rping and many others tell each other: offset (8), STag (4),
// length (4), big-endian.
type Key struct {
	STag   uint32 // which memory; others call it an rkey
	Offset uint64 // of its first byte: the tagged offset that [Work.TO] is, of RFC 5040; others call it an address
	Length uint32 // in bytes
}

func keyOf(g *memory.Grant) Key {
	return Key{STag: g.STag(), Offset: g.Base(), Length: uint32(min(uint64(g.Len()), math.MaxUint32))}
}

// String names the memory, as in "4096 bytes at 0x0 of STag 0x1f00".
func (k Key) String() string {
	return fmt.Sprintf("%d bytes at %#x of STag %#x", k.Length, k.Offset, k.STag)
}

// ParseKey reads a key from the beginning of b.
func ParseKey(b []byte) (Key, error) {
	if len(b) < KeySize {
		return Key{}, fmt.Errorf("a key has %d bytes, not %d", KeySize, len(b))
	}
	return Key{
		Offset: binary.BigEndian.Uint64(b),
		STag:   binary.BigEndian.Uint32(b[8:]),
		Length: binary.BigEndian.Uint32(b[12:]),
	}, nil
}

// Append adds the bytes of the key to b.
func (k Key) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, k.Offset)
	b = binary.BigEndian.AppendUint32(b, k.STag)
	return binary.BigEndian.AppendUint32(b, k.Length)
}

// Bytes returns the bytes of the key.
func (k Key) Bytes() []byte { return k.Append(nil) }

// Part returns the key of a part, from the offset within the memory on. [ErrBounds]: it is not all within.
func (k Key) Part(offset, length uint32) (Key, error) {
	if uint64(offset)+uint64(length) > uint64(k.Length) {
		return Key{}, fmt.Errorf("%w: %d bytes at %d, of %v", ErrBounds, length, offset, k)
	}
	return Key{STag: k.STag, Offset: k.Offset + uint64(offset), Length: length}, nil
}
