package dgrdma

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// CompletionWord is the word that a peer writes when all data of a transaction has
// arrived: at an address of its memory, little-endian. The zero CompletionWord is none, and
// so is the word of all ones at address all ones, which says on the wire that there is
// none. Not every kind of peer does without: see [ErrNoCompletion].
type CompletionWord struct {
	addr, value uint32 // complements, so that the zero value is what the wire calls none
}

// Word returns the completion word that writes value at addr. A concurrent reader sees all of it or nothing
// where addr is a multiple of four; elsewhere it may see a part.
func Word(addr, value uint32) CompletionWord { return CompletionWord{^addr, ^value} }

// Addr returns where the word is written.
func (c CompletionWord) Addr() uint32 { return ^c.addr }

// Value returns what is written there.
func (c CompletionWord) Value() uint32 { return ^c.value }

// IsZero reports whether nothing is written.
func (c CompletionWord) IsZero() bool { return c == CompletionWord{} }

// Load32 reads the little-endian word at addr. At a multiple of 4 the read is
// atomic, and what the word's writer placed before it is visible after it.
// Outside the memory it panics, as an index would: the zero Region has none, so every
// address is outside.
func (r *Region) Load32(addr uint32) uint32 {
	return load32(r.mem[addr : uint64(addr)+4])
}

// Store32 writes the little-endian word at addr and wakes the goroutines that watch it. At a
// multiple of 4 the write is atomic and ordered after all writes before it. Outside the
// memory it panics, as Load32 does.
func (r *Region) Store32(addr, value uint32) {
	store32(r.mem[addr:uint64(addr)+4], value)
	if addr%4 != 0 {
		r.watch.n.Add(0) // plain stores must be seen before the look at n
	}
	r.watch.wake(addr)
}

func wordAt(b []byte) *uint32 {
	if p := unsafe.Pointer(&b[0]); uintptr(p)%4 == 0 {
		return (*uint32)(p)
	}
	return nil
}

// little returns a word in the machine's order of bytes in little-endian, or back.
func little(v uint32) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Pointer(&v))[:])
}

func load32(b []byte) uint32 {
	if w := wordAt(b); w != nil {
		return little(atomic.LoadUint32(w))
	}
	return binary.LittleEndian.Uint32(b)
}

func store32(b []byte, v uint32) {
	if w := wordAt(b); w != nil {
		atomic.StoreUint32(w, little(v))
		return
	}
	binary.LittleEndian.PutUint32(b, v)
}
