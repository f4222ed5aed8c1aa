package main

import (
	"encoding/binary"
	"fmt"
)

// A side's memory is cut into slots. A transaction fills one: its completion word names it, and each eight bytes of its
// data say of which transaction they are, and where they belong.
const (
	slots      = 16
	stride     = 64 << 10
	dataAt     = 64
	mostData   = stride - dataAt
	memorySize = slots * stride
	wordSize   = 8
)

// name is a transaction of one direction: the life of who posted it, and its number there, from 1.
type name struct {
	life   uint16
	number uint32
}

func (n name) String() string { return fmt.Sprintf("transaction %d of life %d", n.number, n.life) }

// before reports whether n was posted before o: a life begins behind the end of the one before.
func (n name) before(o name) bool {
	return n.life < o.life || n.life == o.life && n.number < o.number
}

// size returns how many bytes of data a transaction has. It follows from its name, so that whoever finds it knows.
func (n name) size() int {
	x := uint64(n.life)<<32 | uint64(n.number)
	x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	x ^= x >> 29
	most := [...]uint64{512, 512, 512, 8 << 10, 8 << 10, mostData}[x%6]
	return int(wordSize + x>>8%(most/wordSize)*wordSize)
}

// completion returns the completion word of a transaction. It is not 0.
func (n name) completion() uint32 { return uint32(n.life)<<20 | n.number&(1<<20-1) }

// put writes the words of a transaction from one place of it on.
func (n name) put(b []byte, from int) {
	for i := 0; i+wordSize <= len(b); i += wordSize {
		binary.LittleEndian.PutUint64(b[i:], uint64(n.life)<<48|uint64(n.number)<<16|uint64((from+i)/wordSize))
	}
}

// wordOf reads a word: of which transaction it is, and at which place it belongs. 0 is nobody's.
func wordOf(b []byte) (n name, at int, ok bool) {
	x := binary.LittleEndian.Uint64(b)
	return name{uint16(x >> 48), uint32(x >> 16)}, int(x&0xffff) * wordSize, x != 0
}

// lacks returns the first place of a transaction's data in its slot that is not its own, or -1.
func (n name) lacks(slot []byte) int {
	size := n.size()
	for at := 0; at < size; at += wordSize {
		if of, place, ok := wordOf(slot[dataAt+at:]); !ok || of != n || place != at {
			return at
		}
	}
	return -1
}
