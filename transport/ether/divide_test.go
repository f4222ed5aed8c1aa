package ether

import (
	"math/bits"
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// TestRingTakesWhatItIsAsked: the kernel takes no more memory for a ring than was said, and
// nearly all of it is slots, whatever their length.
func TestRingTakesWhatItIsAsked(t *testing.T) {
	const bytes = 64 << 20
	for mtu := transport.LeastMTU; mtu <= transport.MostMTU; mtu++ {
		var r ring
		r.divide(mtu)
		if bits.OnesCount(uint(r.blockSize)) != 1 || r.blockSize%os.Getpagesize() != 0 {
			t.Fatalf("MTU %d: blocks of %d bytes, which the kernel rounds up", mtu, r.blockSize)
		}
		taken := r.blocks(bytes) * r.blockSize
		slots := r.blocks(bytes) * r.perBlock * r.slotSize
		if r.slotSize < offData+mtu || r.perBlock*r.slotSize > r.blockSize || taken > bytes || slots < bytes*7/8 {
			t.Fatalf("MTU %d: %d bytes were asked for, %d are taken, %d are slots of %d; %d in a block of %d", mtu, bytes, taken, slots, r.slotSize, r.perBlock, r.blockSize)
		}
	}
}
