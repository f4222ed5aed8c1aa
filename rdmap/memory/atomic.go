package memory

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// FetchAdd adds to the word at the TO, and returns what it was before. Each bit of the mask
// is the most significant one of a field, out of which nothing is carried: 0 is a plain
// addition of 64 bits (RDMAPX-012). The error has a [ddp.Fault] in it.
func (s *Stream) FetchAdd(stag uint32, to uint64, add, mask uint64) (old uint64, err error) {
	err = s.word(stag, to, RemoteAtomic, func(word *uint64) { old = fetchAdd(word, add, mask) })
	return old, err
}

// CompareSwap returns what the word at the TO was. If that is the same as compare in the bits of
// compareMask, the bits of swapMask become those of swap (RDMAPX-013). The error has a
// [ddp.Fault] in it.
func (s *Stream) CompareSwap(stag uint32, to uint64, compare, compareMask, swap, swapMask uint64) (old uint64, err error) {
	err = s.word(stag, to, RemoteAtomic, func(word *uint64) {
		old = compareSwap(word, compare, compareMask, swap, swapMask)
	})
	return old, err
}

// Store writes eight bytes, which have no order of their own, to the TO, all at once (COMMIT-032,
// COMMIT-036). The error has a [ddp.Fault] in it.
func (s *Stream) Store(stag uint32, to uint64, bytes [8]byte) error {
	return s.word(stag, to, RemoteWrite, func(word *uint64) {
		atomic.StoreUint64(word, binary.NativeEndian.Uint64(bytes[:]))
	})
}

// word calls f with the word at the TO, if the stream may do with it what right says.
func (s *Stream) word(stag uint32, to uint64, right Rights, f func(word *uint64)) error {
	g, span, err := s.request(stag, to, 8, right)
	if err != nil {
		return err
	}
	word := unsafe.Pointer(unsafe.SliceData(span.Bytes))
	if uintptr(word)%8 != 0 { // the address counts, not the TO (RDMAPX-010)
		return ErrMisaligned
	}
	return g.requested(span, span.Touch(func([]byte) { f((*uint64)(word)) }))
}

// Word is the eight bytes at an offset, for the functions of package sync/atomic: with them the program and its peers
// see each other's operations as whole. The address must be a multiple of eight, and stays good until the bytes are
// somebody else's.
func (g *Grant) Word(offset int) (*uint64, error) {
	bytes := g.Bytes()
	if offset < 0 || offset > len(bytes)-8 {
		return nil, fmt.Errorf("%w: eight bytes at %d of %d", ErrBounds, offset, len(bytes))
	}
	word := unsafe.Pointer(&bytes[offset])
	if uintptr(word)%8 != 0 {
		return nil, ErrMisaligned
	}
	return (*uint64)(word), nil
}

func fetchAdd(word *uint64, add, mask uint64) (old uint64) {
	if mask == 0 {
		return atomic.AddUint64(word, add) - add
	}
	for {
		old = atomic.LoadUint64(word)
		if atomic.CompareAndSwapUint64(word, old, addFields(old, add, mask)) {
			return old
		}
	}
}

// addFields adds field by field. Without their top bits the fields cannot overflow, and what is
// carried into a top bit is right; the sum of the top bits themselves is without carry.
func addFields(a, b, tops uint64) uint64 {
	return ((a &^ tops) + (b &^ tops)) ^ ((a ^ b) & tops)
}

func compareSwap(word *uint64, compare, compareMask, swap, swapMask uint64) (old uint64) {
	for {
		old = atomic.LoadUint64(word)
		if (compare^old)&compareMask != 0 {
			return old
		}
		if atomic.CompareAndSwapUint64(word, old, old&^swapMask|swap&swapMask) {
			return old
		}
	}
}

// run are the size bytes from first on, which are of one slice.
func run(first *byte, size uint64) []byte { return unsafe.Slice(first, size) }

// offset is where part begins in what begins with first.
func offset(first *byte, part []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(first)))
}
