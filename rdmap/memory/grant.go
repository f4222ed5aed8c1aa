package memory

import "sync/atomic"

// Grant is what a STag stands for: bytes, what may be done with them, and by whom. A [Region]
// is one, and so is a [Window]. It is a ddp.Guard of its bytes.
type Grant struct {
	// 64 bytes, a line of the cache on most machines: to find a grant, to enter and to leave
	// it should touch one.
	stag   uint32
	rights Rights
	by     *Stream // or what stands for all streams of the domain
	base   uint64
	bytes  []byte
	gate   atomic.Int64 // how many are inside, and whether it is shut
	region *Region      // whose bytes they are, and who is told when the last one leaves
}

// shut, in a gate, makes it negative whatever number is inside.
const shut = -1 << 62

// STag is the name to tell peers.
func (g *Grant) STag() uint32 { return g.stag }

// Base is the TO of the first byte.
func (g *Grant) Base() uint64 { return g.base }

// Len is the number of bytes.
func (g *Grant) Len() int { return len(g.bytes) }

// Rights are what may be done.
func (g *Grant) Rights() Rights { return g.rights }

// Bytes are the bytes themselves, for the program that granted them. Peers touch them at
// any time until the grant is invalidated.
func (g *Grant) Bytes() []byte { return g.bytes }

// Valid is false from the moment somebody, or the peer, invalidates the grant.
func (g *Grant) Valid() bool { return g.gate.Load() >= 0 }

// Enter says that the bytes may be touched, and keeps it so until Leave, for which whoever
// invalidates the grant waits. So whoever has entered leaves soon, and must not invalidate
// it itself: it would wait for itself.
func (g *Grant) Enter() bool {
	// Look first: who comes too late must not keep the owner waiting again and again.
	if g.gate.Load() < 0 {
		return false
	}
	if g.gate.Add(1) < 0 {
		g.Leave()
		return false
	}
	return true
}

// Leave ends what Enter began.
func (g *Grant) Leave() {
	if g.gate.Add(-1) == shut {
		g.region.emptied(g)
	}
}

// shutGate lets nobody in any more, and takes the STag away. It waits for nobody. It is
// called with the region's lock.
func (g *Grant) shutGate() {
	if g.gate.Load() >= 0 { // nobody else shuts it while we have the lock
		g.gate.Add(shut)
		g.by.table.remove(g.stag)
	}
}

// empty says that nobody is inside a gate that is shut.
func (g *Grant) empty() bool { return g.gate.Load() == shut }

// within are the n bytes from the TO to on. Of 0 bytes the offset does not matter.
func (g *Grant) within(to uint64, n uint32) ([]byte, Violation) {
	at, size := to-g.base, uint64(len(g.bytes)) // below the base, at is beyond every size
	switch {
	case n == 0:
		return nil, None
	case at <= size && uint64(n) <= size-at:
		return g.bytes[at : at+uint64(n) : at+uint64(n)], None
	case to+uint64(n)-1 < to:
		return nil, Wrap
	}
	return nil, Bounds
}
