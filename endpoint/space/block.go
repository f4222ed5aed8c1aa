package space

import (
	"cmp"
	"slices"
	"sync"
)

// unit is what pieces are multiples of. Arbitrary: OpenCPI aligns buffers alike.
const unit = 128

// Block is a run of addresses with memory behind them, shared out in pieces. All methods
// may be called at the same time.
type Block struct {
	base  uint64
	bytes []byte

	mu   sync.Mutex
	free []Span // by address, never touching each other
}

// Span is a run of addresses.
type Span struct{ At, N uint64 }

// NewBlock makes a block of size bytes, which begins at base.
func NewBlock(base uint64, size int) *Block {
	return &Block{base: base, bytes: make([]byte, size), free: []Span{{base, uint64(size) &^ (unit - 1)}}}
}

// Size returns the length of the block in bytes.
func (b *Block) Size() uint64 { return uint64(len(b.bytes)) }

// whole returns the units that n bytes take.
func whole(n uint64) uint64 { return max(n+unit-1, unit) &^ (unit - 1) }

// Take finds room for n bytes in one piece, in which is nothing of the spans but: pieces that
// were taken before, by address, never overlapping. Its bytes are as the owner before left them.
// Not ok: there is none.
func (b *Block) Take(n uint64, but ...Span) (s Span, ok bool) {
	want := n
	n = whole(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.free {
		f := b.free[i]
		if f.N < n {
			continue
		}
		at := f.At
		k, _ := slices.BinarySearchFunc(but, at, func(x Span, at uint64) int { return cmp.Compare(x.At+whole(x.N), at+1) })
		for ; k < len(but) && but[k].At < at+n; k++ {
			at = but[k].At + whole(but[k].N)
		}
		if at+n > f.At+f.N {
			continue
		}
		rest := [...]Span{{f.At, at - f.At}, {at + n, f.At + f.N - at - n}}
		kept := rest[:]
		if kept[0].N == 0 {
			kept = kept[1:]
		}
		if kept[len(kept)-1].N == 0 {
			kept = kept[:len(kept)-1]
		}
		b.free = slices.Replace(b.free, i, i+1, kept...)
		return Span{at, want}, true
	}
	return Span{}, false
}

// Give takes a piece back.
func (b *Block) Give(s Span) {
	s.N = whole(s.N)
	b.mu.Lock()
	defer b.mu.Unlock()
	i, _ := slices.BinarySearchFunc(b.free, s, func(x, y Span) int { return cmp.Compare(x.At, y.At) })
	b.free = slices.Insert(b.free, i, s)
	if i+1 < len(b.free) && s.At+s.N == b.free[i+1].At {
		b.free[i].N += b.free[i+1].N
		b.free = slices.Delete(b.free, i+1, i+2)
	}
	if i > 0 && b.free[i-1].At+b.free[i-1].N == b.free[i].At {
		b.free[i-1].N += b.free[i].N
		b.free = slices.Delete(b.free, i, i+1)
	}
}

// Bytes returns the memory at addresses that were taken.
func (b *Block) Bytes(s Span) []byte {
	from := s.At - b.base
	return b.bytes[from : from+s.N : from+s.N]
}

// Free returns what is not taken.
func (b *Block) Free() []Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.free)
}
