package ether

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chunks is the memory from which an [xsk] sends, in pieces of a size. The one given back last
// is used next: it is in the processor's cache.
type chunks struct {
	size   int
	memory []byte
	free   []uint32 // numbers of chunks
}

func (c *chunks) fill(memory []byte) {
	c.memory = memory
	c.free = make([]uint32, 0, len(memory)/c.size)
	for i := len(memory)/c.size - 1; i >= 0; i-- {
		c.free = append(c.free, uint32(i))
	}
}

// take returns a chunk and its number. There must be one.
func (c *chunks) take() (number uint32, memory []byte) {
	last := len(c.free) - 1
	number = c.free[last]
	c.free = c.free[:last]
	return number, c.memory[int(number)*c.size:][:c.size:c.size]
}

// addr returns where the kernel finds a chunk.
func (c *chunks) addr(number uint32) uint64 { return uint64(number) * uint64(c.size) }

// giveBack is told an address in the chunk.
func (c *chunks) giveBack(addr uint64) { c.free = append(c.free, uint32(addr/uint64(c.size))) }

// chunksOf returns how many a frame takes.
func (c *chunks) chunksOf(length int) int {
	return (frameOffset + headerSize + length + c.size - 1) / c.size
}

// used returns how many are not free.
func (c *chunks) used() int { return cap(c.free) - len(c.free) }

// indexes are where a ring that is shared with the kernel is written and read next.
type indexes struct {
	producer, consumer *uint32
	mask               uint32
}

func (r *indexes) init(memory []byte, at unix.XDPRingOffset, entries int) {
	r.producer = (*uint32)(unsafe.Pointer(&memory[at.Producer]))
	r.consumer = (*uint32)(unsafe.Pointer(&memory[at.Consumer]))
	r.mask = uint32(entries) - 1
}

// sendRing has the chunks that the kernel is to send. It has room for all there are.
type sendRing struct {
	indexes
	entries []unix.XDPDesc
	next    uint32 // to be written; what is before it is shown to the kernel by show
}

func (r *sendRing) init(memory []byte, at unix.XDPRingOffset, entries int) {
	r.indexes.init(memory, at, entries)
	r.entries = unsafe.Slice((*unix.XDPDesc)(unsafe.Pointer(&memory[at.Desc])), entries)
}

// add adds length bytes at an address, with more of the same frame in the next entry, or without.
func (r *sendRing) add(addr uint64, length int, more bool) {
	e := &r.entries[r.next&r.mask]
	e.Addr, e.Len, e.Options = addr, uint32(length), 0
	if more {
		e.Options = unix.XDP_PKT_CONTD
	}
	r.next++
}

func (r *sendRing) show() { atomic.StoreUint32(r.producer, r.next) }

// frames returns how many frames the kernel has not taken, as far as it has told.
func (r *sendRing) frames() (n int) {
	for i := atomic.LoadUint32(r.consumer); i != r.next; i++ {
		if r.entries[i&r.mask].Options&unix.XDP_PKT_CONTD == 0 {
			n++
		}
	}
	return n
}

// waiting returns how many entries the kernel has not taken, as far as it has told.
func (r *sendRing) waiting() int { return int(r.next - atomic.LoadUint32(r.consumer)) }

// completionRing has the chunks that have left.
type completionRing struct {
	indexes
	entries []uint64
	taken   uint32
}

func (r *completionRing) init(memory []byte, at unix.XDPRingOffset, entries int) {
	r.indexes.init(memory, at, entries)
	r.entries = unsafe.Slice((*uint64)(unsafe.Pointer(&memory[at.Desc])), entries)
}

// next returns the address of a chunk that has left.
func (r *completionRing) next() (addr uint64, ok bool) {
	if r.taken == atomic.LoadUint32(r.producer) {
		return 0, false
	}
	addr = r.entries[r.taken&r.mask]
	r.taken++
	atomic.StoreUint32(r.consumer, r.taken)
	return addr, true
}
