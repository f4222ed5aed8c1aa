package link

import (
	"hash/maphash"
)

// partial is what came of the transaction that fills a buffer. A flag is believed only when exactly
// the bytes came that it states. Other bytes in the buffer are of another message, and may be of
// another peer.
type partial struct {
	txn    uint32
	begun  bool
	prefix uint32 // length of what came from the buffer's beginning on
	rest   uint64 // of all other bytes: see add
}

// add notes that the bytes from one offset to another came. Bytes that are not next add the mark of
// their end and subtract the mark of their beginning. So runs that join up add what one run of all of
// them would. Others do not, because a peer cannot guess the marks.
func (f *partial) add(from, to uint32) {
	if from == f.prefix {
		f.prefix = to
		return
	}
	f.rest += mark(to) - mark(from)
}

// isExactly reports whether the first n bytes came, each of them once, and no others.
func (f *partial) isExactly(n uint32) bool {
	if f.prefix == n {
		return f.rest == 0 // as below, in less time
	}
	return f.rest == mark(n)-mark(f.prefix)
}

var markSeed = maphash.MakeSeed()

// mark is a random number that stands for an offset.
func mark(off uint32) uint64 { return maphash.Comparable(markSeed, off) }
