package ack

import (
	mathbits "math/bits"

	"github.com/dgrdma/dgrdma/frame"
)

// bits is a set of ids by remainder. Its size, a power of two, goes with every
// call.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(s frame.Seq, n int) bool {
	i := uint(int(s) & (n - 1))
	return b[i/64]&(1<<(i%64)) != 0
}

func (b bits) add(s frame.Seq, n int) {
	i := uint(int(s) & (n - 1))
	b[i/64] |= 1 << (i % 64)
}

func (b bits) remove(s frame.Seq, n int) {
	i := uint(int(s) & (n - 1))
	b[i/64] &^= 1 << (i % 64)
}

// removeRun removes count ids from s on, by whole words: a frame may name an id
// that is far ahead.
func (b bits) removeRun(s frame.Seq, count, n int) {
	if count >= n {
		clear(b)
		return
	}
	for count > 0 {
		i := int(s) & (n - 1)
		k := min(n-i, count)
		if i%64 != 0 || k < 64 {
			k = min(64-i%64, k)
			b[i/64] &^= (1<<k - 1) << (i % 64)
		} else {
			k &^= 63
			clear(b[i/64 : (i+k)/64])
		}
		s = s.Add(k)
		count -= k
	}
}

// addRun adds count ids from s on, likewise.
func (b bits) addRun(s frame.Seq, count, n int) {
	for count = min(count, n); count > 0; {
		i := int(s) & (n - 1)
		k := min(64-i%64, n-i, count)
		b[i/64] |= ^uint64(0) >> (64 - k) << (i % 64)
		s = s.Add(k)
		count -= k
	}
}

// run returns how many of the ids from s on are in the set, one behind the other, up to most.
func (b bits) run(s frame.Seq, most, n int) (found int) {
	for found < most {
		i := int(s.Add(found)) & (n - 1)
		k := min(64-i%64, n-i, most-found)
		ones := min(mathbits.TrailingZeros64(^(b[i/64] >> (i % 64))), k)
		if found += ones; ones < k {
			break
		}
	}
	return found
}

// runBefore is run from the id before s down.
func (b bits) runBefore(s frame.Seq, most, n int) (found int) {
	for found < most {
		i := int(s.Add(-found-1)) & (n - 1)
		k := min(i%64+1, most-found)
		ones := min(mathbits.LeadingZeros64(^(b[i/64] << (63 - i%64))), k)
		if found += ones; ones < k {
			break
		}
	}
	return found
}
