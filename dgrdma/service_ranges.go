package dgrdma

import (
	"fmt"

	"github.com/dgrdma/dgrdma/frame"
)

// windowUnit is what windows of the address space are multiples of. Arbitrary: a page.
const windowUnit = 4096

// served is a service and its window of the address space.
type served struct {
	Service
	name      frame.ServiceName
	base, end uint64
}

func (s *served) has(addr uint32) bool { return uint64(addr) >= s.base && uint64(addr) < s.end }

// window returns so many addresses that are free. Guarded by mu.
func (e *Endpoint) window(size uint64) (base, end uint64, err error) {
	if size < MailSize || size > 1<<32 {
		return 0, 0, fmt.Errorf("%d addresses, need %d to 2^32: %w", size, MailSize, ErrBounds)
	}
	if base, err = e.taken(); err != nil {
		return 0, 0, err
	}
	base = (min(base, 1<<32) + windowUnit - 1) &^ (windowUnit - 1)
	if end = base + size; end > 1<<32 {
		return 0, 0, fmt.Errorf("no %d addresses are left of 2^32: %w", size, ErrBounds)
	}
	return base, end, nil
}

// taken returns where the addresses end that the memory and the services have. Guarded by
// mu.
func (e *Endpoint) taken() (uint64, error) {
	if n := len(e.services); n > 0 {
		return e.services[n-1].end, nil
	}
	return e.ownEnd()
}

// ownEnd returns where the addresses of the plain memory end.
func (e *Endpoint) ownEnd() (uint64, error) {
	if _, none := e.memory.(noMemory); none {
		return 0, nil
	}
	m, ok := e.memory.(interface{ Size() uint64 })
	if !ok {
		return 0, fmt.Errorf("the endpoint's memory, which does not tell its size, may take all addresses: %w", ErrBounds)
	}
	return m.Size(), nil
}

// Size returns how many addresses the endpoint's memory and services take: what peers
// may write to lies below.
func (e *Endpoint) Size() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, _ := e.taken() // 0, if it is unknown
	return n
}
