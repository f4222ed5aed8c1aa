package link

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// reserved is the beginning of the memory that links do not use: the letter boxes
// are there, as the flags are in OpenCPI's endpoints.
const reserved = 16 << 10

// allocation is the unit in which memory is shared out; OpenCPI aligns buffers
// alike.
const allocation = 128

// leastMemory is what every link takes, so that the host's memory bounds what peers
// can make it keep for links besides: about as much.
const leastMemory = 2 << 10

// block is an endpoint's memory, shared out to links.
type block struct {
	bytes []byte

	mu   sync.Mutex
	free []span // by address, never touching each other
}

type span struct{ at, n uint64 }

func newBlock(size int) (*block, error) {
	if size < 2*reserved || uint64(size) > 1<<32 {
		return nil, fmt.Errorf("link: memory of %d bytes; need %d to 2^32", size, 2*reserved)
	}
	return &block{
		bytes: make([]byte, size-reserved),
		free:  []span{{reserved, uint64(size-reserved) &^ (allocation - 1)}},
	}, nil
}

func (b *block) size() uint64 { return uint64(len(b.bytes)) + reserved }

// take finds room for n bytes. It is as it was left by who had it before.
func (b *block) take(n uint64) (addr uint32, err error) {
	n = max(n+allocation-1, allocation) &^ (allocation - 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.free {
		f := &b.free[i]
		if f.n < n {
			continue
		}
		addr = uint32(f.at)
		f.at += n
		if f.n -= n; f.n == 0 {
			b.free = slices.Delete(b.free, i, i+1)
		}
		return addr, nil
	}
	return 0, fmt.Errorf("link: no %d bytes in one piece left of %d; open the host with more memory: %w", n, b.size(), ErrNoMemory)
}

func (b *block) give(addr uint32, n uint64) {
	s := span{uint64(addr), max(n+allocation-1, allocation) &^ (allocation - 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	i, _ := slices.BinarySearchFunc(b.free, s, func(x, y span) int { return cmp.Compare(x.at, y.at) })
	b.free = slices.Insert(b.free, i, s)
	if i+1 < len(b.free) && s.at+s.n == b.free[i+1].at {
		b.free[i].n += b.free[i+1].n
		b.free = slices.Delete(b.free, i+1, i+2)
	}
	if i > 0 && b.free[i-1].at+b.free[i-1].n == b.free[i].at {
		b.free[i-1].n += b.free[i].n
		b.free = slices.Delete(b.free, i, i+1)
	}
}

// at returns n bytes from an address on, which were taken.
func (b *block) at(addr uint32, n uint64) []byte {
	from := uint64(addr) - reserved
	return b.bytes[from : from+n : from+n]
}
