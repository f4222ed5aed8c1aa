package rpc

import (
	"math/bits"
	"sync"
)

// memory is memory for messages and bulk items. It is of a class, a power of two from 4 KiB to 4 MiB;
// what is longer is left to the garbage collector.
type memory struct{ b []byte }

const (
	leastClass = 12
	mostClass  = 22
)

var classes [mostClass - leastClass + 1]sync.Pool

// class returns the index of the class for n octets.
func class(n int) int { return max(bits.Len(uint(max(n, 1)-1)), leastClass) - leastClass }

// takeMemory returns memory of at least n octets. It is not cleared.
func takeMemory(n int) *memory {
	i := class(n)
	if i >= len(classes) {
		return &memory{make([]byte, n)}
	}
	if m, ok := classes[i].Get().(*memory); ok {
		return m
	}
	return &memory{make([]byte, 1<<(i+leastClass))}
}
