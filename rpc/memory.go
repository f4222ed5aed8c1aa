package rpc

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/rpcrdma"
)

// memory is memory for messages and bulk items, which several users share: the last one to release it
// returns it. It is of a class, a power of two from 4 KiB to 4 MiB; what is longer is left to the
// garbage collector.
type memory struct {
	b      []byte
	users  atomic.Int32
	buffer rpcrdma.Buffer // a part of b, for connections over RDMA
}

const (
	leastClass = 12
	mostClass  = 22
)

var classes [mostClass - leastClass + 1]sync.Pool

// class returns the index of the class for n octets.
func class(n int) int { return max(bits.Len(uint(max(n, 1)-1)), leastClass) - leastClass }

// takeMemory returns memory of at least n octets, for one user. It is not cleared.
func takeMemory(n int) *memory {
	var m *memory
	if i := class(n); i >= len(classes) {
		m = &memory{b: make([]byte, n)}
	} else if m, _ = classes[i].Get().(*memory); m == nil {
		m = &memory{b: make([]byte, 1<<(i+leastClass))}
	}
	m.users.Store(1)
	return m
}

// share adds a user.
func (m *memory) share() { m.users.Add(1) }

// shared reports whether there is another user than the one who asks.
func (m *memory) shared() bool { return m.users.Load() > 1 }

// release ends the use by one user. nil may be released.
func (m *memory) release() {
	if m == nil || m.users.Add(-1) > 0 {
		return
	}
	if i := class(len(m.b)); i < len(classes) && len(m.b) == 1<<(i+leastClass) {
		classes[i].Put(m)
	}
}
