package bench

import (
	"encoding/binary"
	"fmt"
)

// Verify is how much of the data the receiver looks at.
type Verify uint32

const (
	VerifyOff    Verify = 0
	VerifySample Verify = 1
	VerifyFull   Verify = 2
)

// Verifications are what can be chosen, by name.
var Verifications = map[string]Verify{"off": VerifyOff, "sample": VerifySample, "full": VerifyFull}

const (
	// sampleEvery is the distance of the words that change with every
	// transaction when a sample is verified: few, for each is a miss of every cache
	// that no use of the data would add. The others are filled once.
	sampleEvery = 32 << 10
	// wholeEvery is how often a whole transaction is looked at all the same.
	wholeEvery = 1024
)

// pattern is what a transaction's bytes are: words that depend on the slot, on
// how often the slot was used (the round), and on the place.
type pattern struct {
	verify Verify
	static uint64
	fresh  uint64
}

func patternOf(verify Verify, slot int, round uint32) pattern {
	return pattern{verify: verify, static: mix(uint64(slot) << 32), fresh: mix(uint64(slot)<<32 | uint64(round))}
}

// mix is the finalizer of MurmurHash3.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// The inverse of each factor of mix, modulo 2^64.
const (
	unmixFirst  = 0x4f74430c22a54005
	unmixSecond = 0x9cb4b2f8129337db
)

// slotOf returns what the first word of a transaction was made of, if its size is 8 or more.
func slotOf(word uint64) (slot, round uint32) {
	x := word ^ word>>33
	x *= unmixSecond
	x ^= x >> 33
	x *= unmixFirst
	x ^= x >> 33
	return uint32(x >> 32), uint32(x)
}

const wordStep = 0x9E3779B97F4A7C15

// word returns the eight bytes at an offset that is a multiple of 8.
func (p pattern) word(offset int) uint64 {
	if p.verify == VerifyFull || offset%sampleEvery == 0 {
		return p.fresh + uint64(offset)*wordStep
	}
	return p.static + uint64(offset)*wordStep
}

// fill writes all words.
func (p pattern) fill(b []byte) {
	for at := 0; at < len(b); at += 8 {
		p.put(b, at)
	}
}

// renew writes those that change with the round.
func (p pattern) renew(b []byte) {
	switch p.verify {
	case VerifyFull:
		p.fill(b)
	case VerifySample:
		for at := 0; at < len(b); at += sampleEvery {
			p.put(b, at)
		}
	}
}

func (p pattern) put(b []byte, at int) {
	if at+8 <= len(b) {
		binary.LittleEndian.PutUint64(b[at:], p.word(at))
		return
	}
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], p.word(at))
	copy(b[at:], w[:])
}

// mismatch is a place where something else was found.
type mismatch struct {
	slot          int
	round         uint32
	offset        int // -1: the completion itself
	expected, got uint64
}

func (m *mismatch) Error() string {
	if m.offset < 0 {
		return fmt.Sprintf("slot %d: completed for the %dth time, expected the %dth", m.slot, m.got, m.expected)
	}
	return fmt.Sprintf("slot %d, transaction %d in it, byte %d: found %#016x, sent %#016x", m.slot, m.round, m.offset, m.got, m.expected)
}

// check compares a transaction that is complete with what was sent: the words
// that must have changed, and all of them if whole is set.
func (p pattern) check(b []byte, whole bool) (offset int, expected, got uint64, ok bool) {
	step := sampleEvery
	if whole || p.verify == VerifyFull {
		step = 8
	}
	for at := 0; at < len(b); at += step {
		want := p.word(at)
		if at+8 <= len(b) {
			got = binary.LittleEndian.Uint64(b[at:])
		} else {
			var w [8]byte
			copy(w[:], b[at:])
			got = binary.LittleEndian.Uint64(w[:])
			want &= 1<<(8*(len(b)-at)) - 1
		}
		if got != want {
			return at, want, got, false
		}
	}
	return 0, 0, 0, true
}
