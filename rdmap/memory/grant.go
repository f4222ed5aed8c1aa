package memory

import "sync/atomic"

// Grant is what a STag stands for: bytes, what may be done with them, and by whom. A [Region]
// is one, and so is a [Window]. It is a ddp.Guard of its bytes.
//
// A region that is registered again is the same grant in its next epoch, with other bytes and another STag. Peers read it
// without a lock, see [Stream.Find], so that all that changes is atomic.
type Grant struct {
	// 64 bytes at most, a line of the cache on most machines: to find a grant, to enter and to leave
	// it should touch one.
	stag   atomic.Uint32
	rights atomic.Uint32
	base   atomic.Uint64
	first  atomic.Pointer[byte] // of size bytes
	size   atomic.Uint64
	gate   atomic.Uint64 // how many are inside, whether it is shut, and the epoch
	by     *Stream       // or what stands for all streams of the domain
	region *Region       // whose bytes they are, and who is told when the last one leaves
}

// What a gate consists of.
const (
	oneEpoch = 1 << 24
	shut     = 1 << 23
	inside   = shut - 1
)

// STag is the name to tell peers.
func (g *Grant) STag() uint32 { return g.stag.Load() }

// Base is the TO of the first byte.
func (g *Grant) Base() uint64 { return g.base.Load() }

// Len is the number of bytes.
func (g *Grant) Len() int { return int(g.size.Load()) }

// Rights are what may be done.
func (g *Grant) Rights() Rights { return Rights(g.rights.Load()) }

// Bytes are the bytes themselves, for the program that granted them. Peers touch them at
// any time until the grant is invalidated.
func (g *Grant) Bytes() []byte { return run(g.first.Load(), g.size.Load()) }

// set says what is granted. Nobody is inside, or has the STag that the grant is to get.
func (g *Grant) set(bytes []byte, rights Rights, base uint64) {
	g.rights.Store(uint32(rights))
	g.base.Store(base)
	var first *byte
	if len(bytes) > 0 {
		first = &bytes[0]
	}
	g.first.Store(first)
	g.size.Store(uint64(len(bytes)))
}

// Valid is false from the moment somebody, or the peer, invalidates the grant.
func (g *Grant) Valid() bool { return g.gate.Load()&shut == 0 }

// Enter says that the bytes of that epoch may be touched, and keeps it so until Leave, for which whoever
// invalidates the grant waits. So whoever has entered leaves soon, and must not invalidate
// it itself: it would wait for itself.
func (g *Grant) Enter(epoch uint64) bool {
	// Look first: who comes too late must not keep the owner waiting again and again.
	if g.gate.Load()&^inside != epoch {
		return false
	}
	if g.gate.Add(1)&^inside != epoch {
		g.Leave()
		return false
	}
	return true
}

// Leave ends what Enter began.
func (g *Grant) Leave() {
	if emptied(g.gate.Add(^uint64(0))) {
		g.region.emptied(g)
	}
}

// shutGate lets nobody in any more, and takes the STag away. It waits for nobody. It is
// called with the region's lock.
func (g *Grant) shutGate() {
	if g.Valid() { // nobody else shuts it while we have the lock
		g.gate.Add(shut)
		g.by.table.remove(g.STag())
	}
}

// open lets in again, in the next epoch, what Invalidate has shut out. Who comes with an epoch of before may be counted, and is
// sent away. It is called with the region's lock.
func (g *Grant) open() { g.gate.Add(oneEpoch - shut) }

// empty says that nobody is inside a gate that is shut.
func (g *Grant) empty() bool { return emptied(g.gate.Load()) }

func emptied(gate uint64) bool { return gate&(shut|inside) == shut }

// within says how far behind the base of size bytes the TO is, if n bytes from there on are among them. Of 0 bytes the TO
// does not matter.
func within(base, size, to uint64, n uint32) (at uint64, v Violation) {
	at = to - base // below the base, it is beyond every size
	switch {
	case n == 0:
		return 0, None
	case at <= size && uint64(n) <= size-at:
		return at, None
	case to+uint64(n)-1 < to:
		return 0, Wrap
	}
	return 0, Bounds
}
