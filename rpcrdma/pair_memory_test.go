package rpcrdma

import (
	"fmt"
	"math/rand/v2"
	"unsafe"
)

type pairRegion struct {
	b     []byte
	write bool
	base  uint64
}

// pairPool is a Pool that fills what comes back with rubbish, and knows each buffer.
type pairPool struct {
	out    map[*Buffer]string
	rng    *rand.Rand
	scarce int // of 100 times, how often it has none
	refuse int // it has none of so many octets
	fail   func(format string, args ...any)
}

const rubbish = 0xdb

func (p *pairPool) Get(n int) *Buffer {
	if p.rng.IntN(100) < p.scarce || p.refuse > 0 && n == p.refuse {
		return nil
	}
	b := &Buffer{B: make([]byte, n)}
	for i := range b.B {
		b.B[i] = rubbish
	}
	p.out[b] = ""
	return b
}

func (p *pairPool) Put(b *Buffer) {
	if _, is := p.out[b]; !is {
		p.fail("a buffer of %d octets is given back that is not out", len(b.B))
	}
	delete(p.out, b)
	for i := range b.B {
		b.B[i] = rubbish
	}
}

// Register and Withdraw make an end the Memory of its machine.
func (e *fakeEnd) Register(l *Lease, b []byte, write bool, base uint64) error {
	if l.Live {
		e.pair.fail("%s: memory is registered by a lease that is live", e.name)
	}
	handle := e.pair.rng.Uint32()
	for handle == 0 || e.memory[handle] != nil || e.peer.memory[handle] != nil {
		handle = e.pair.rng.Uint32()
	}
	r := &pairRegion{b, write, base}
	e.memory[handle] = r
	l.Region, l.Segment = r, Segment{handle, uint32(len(b)), base}
	return nil
}

func (e *fakeEnd) Withdraw(l *Lease) {
	if r := e.memory[l.Handle]; r != nil && r == l.Region {
		delete(e.memory, l.Handle)
	}
	l.Region = nil
}

// lends reports whether the peer may use any of the memory.
func (e *fakeEnd) lends(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	first := uintptr(unsafe.Pointer(&b[0]))
	for _, r := range e.memory {
		if len(r.b) > 0 {
			at := uintptr(unsafe.Pointer(&r.b[0]))
			if at < first+uintptr(len(b)) && first < at+uintptr(len(r.b)) {
				return true
			}
		}
	}
	return false
}

// span finds memory of this end that the peer wants to use.
func (e *fakeEnd) span(s Segment, write bool) ([]byte, string) {
	r := e.memory[s.Handle]
	switch {
	case r == nil:
		return nil, fmt.Sprintf("handle %#x of %s is not registered", s.Handle, e.name)
	case r.write != write:
		return nil, "the memory is not for that"
	case s.Offset < r.base || s.Offset-r.base > uint64(len(r.b)) || uint64(s.Length) > uint64(len(r.b))-(s.Offset-r.base):
		return nil, "the access is outside of the memory"
	}
	return r.b[s.Offset-r.base:][:s.Length], ""
}
