package link

import (
	"fmt"

	"github.com/dgrdma/dgrdma/endpoint/space"
)

// reserved is the beginning of a host's addresses that links do not use: the letter boxes
// are there, as the flags are in OpenCPI's endpoints.
const reserved = 16 << 10

// leastMemory is what every link takes, so that the host's memory bounds what peers
// can make it keep for links besides: about as much.
const leastMemory = 2 << 10

// checkMemory checks the size of a host's memory.
func checkMemory(size int) error {
	if size < 2*reserved || uint64(size) > 1<<32 {
		return fmt.Errorf("link: a host has %d to 4294967296 bytes of memory, not %d; 0 means %d", 2*reserved, size, defaultMemory)
	}
	return nil
}

// take finds memory for a link of the peer's, of which nothing is kept apart.
func (p *peer) take(n uint64) (space.Span, error) {
	h := p.host
	p.mu.Lock() // no link is retired since the memory kept apart was looked at
	defer p.mu.Unlock()
	s, ok := h.block.Take(n, p.apart...)
	if ok {
		return s, nil
	}
	h.full.memory.Add(1)
	if len(p.apart) > 0 {
		return s, fmt.Errorf("link: no %d bytes in one piece left of %d without those of %d ended links whose end this peer has not answered: %w", n, h.size, len(p.apart), ErrNoMemory)
	}
	return s, fmt.Errorf("link: no %d bytes in one piece left of %d; open the host with more memory: %w", n, h.size, ErrNoMemory)
}
