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

// take finds memory for a link.
func (h *Host) take(n uint64) (space.Span, error) {
	s, ok := h.block.Take(n)
	if !ok {
		h.full.memory.Add(1)
		return s, fmt.Errorf("link: no %d bytes in one piece left of %d; open the host with more memory: %w", n, h.size, ErrNoMemory)
	}
	return s, nil
}
