package outgoing

import "sync"

// slab is memory for frames that lie side by side. It belongs to a batch, or to the frames in flight of one connection.
type slab struct {
	mem  []byte
	used int // bytes of mem that hold frames
	held int // frames that are kept
}

// slabSize is what the kernel cuts into datagrams at most at once.
const slabSize = 1 << 16

var slabs = sync.Pool{New: func() any { return &slab{mem: make([]byte, slabSize)} }}

// takeSlab returns a slab in which a frame of that length fits.
func takeSlab(size int) *slab {
	if size > slabSize {
		return &slab{mem: make([]byte, size)}
	}
	return slabs.Get().(*slab)
}

// giveBack gives back the memory of a slab, which holds no frame any more.
func (s *slab) giveBack() {
	if s.used = 0; len(s.mem) == slabSize {
		slabs.Put(s)
	}
}

// has reports whether there is room for that many more bytes.
func (s *slab) has(size int) bool { return len(s.mem)-s.used >= size }
