package ether

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRingsWrap checks that all chunks are given out, queued, and taken back, again and again, also where the
// indexes wrap, in whatever order the kernel is through with them.
func TestRingsWrap(t *testing.T) {
	const entries, size = 8, 64
	at := unix.XDPRingOffset{Producer: 0, Consumer: 64, Desc: 128}
	var c chunks
	c.size = size
	c.fill(make([]byte, entries*size))
	var queue sendRing
	queue.init(make([]byte, 128+entries*16), at, entries)
	var left completionRing
	left.init(make([]byte, 128+entries*8), at, entries)
	start := ^uint32(0) - 20 // indexes wrap
	*queue.producer, *queue.consumer, queue.next = start, start, start
	*left.producer, *left.consumer, left.taken = start, start, start
	for round := range 20 {
		var given []uint64
		for len(c.free) > 0 {
			number, b := c.take()
			if len(b) != size || cap(b) != size {
				t.Fatalf("a chunk of %d bytes, %d in all", len(b), cap(b))
			}
			given = append(given, c.addr(number))
			queue.add(c.addr(number)+1, size-1, len(given)%2 == 1)
		}
		queue.show()
		if len(given) != entries || c.used() != entries || queue.waiting() != entries || queue.frames() != entries/2 {
			t.Fatalf("round %d: %d chunks, %d used, %d waiting, %d frames", round, len(given), c.used(), queue.waiting(), queue.frames())
		}
		// The kernel takes them, and is through with them in another order.
		var taken []uint64
		for *queue.consumer != *queue.producer {
			taken = append(taken, queue.entries[*queue.consumer&queue.mask].Addr)
			*queue.consumer++
		}
		slices.Reverse(taken)
		for _, addr := range taken {
			left.entries[*left.producer&left.mask] = addr
			*left.producer++
		}
		for {
			addr, ok := left.next()
			if !ok {
				break
			}
			c.giveBack(addr)
		}
		if queue.waiting() != 0 || c.used() != 0 || *left.consumer != *left.producer {
			t.Fatalf("round %d: %d waiting, %d used", round, queue.waiting(), c.used())
		}
		free := slices.Sorted(slices.Values(c.free))
		if !slices.Equal(free, []uint32{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Fatalf("round %d: %d", round, free)
		}
	}
}
