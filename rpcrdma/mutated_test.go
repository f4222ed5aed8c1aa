package rpcrdma

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"
)

var mutations = flag.Int("mutations", 60000, "how many headers TestMutatedHeaders changes")

// TestMutatedHeaders checks over headers in which words were changed, left out, doubled or cut that whatever is taken keeps the rules, and
// that all else is a Fault whose answer can be read; nothing outside of the message is looked at (RPC1-006, RPC2-070, 081).
func TestMutatedHeaders(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := dice{rand.New(rand.NewPCG(seed, 2))}
	decoders := []*Decoder{settled(Version1), settled(Version2), NewDecoder(DefaultLimits()), NewDecoder(Limits{3, 2, 1})}
	taken, refusals := 0, map[ErrorCode]int{}
	for i := range *mutations {
		b := d.mutated(d.header(Version1 + uint32(i)%2).Append(nil))
		decoder := decoders[d.IntN(len(decoders))]
		b = b[:len(b):len(b)]
		checkDecoded(t, decoder, b)
		if t.Failed() {
			t.Fatalf("seed %d, %d: %x", seed, i, b)
		}
		var h Header
		if _, err := decoder.Decode(b, &h); err == nil {
			taken++
		} else {
			refusals[err.(*Fault).Report.Code]++
		}
	}
	t.Logf("%d taken; refused by code: %v", taken, refusals)
	for c := CodeVers; c <= CodeSegments; c++ {
		if refusals[c] == 0 && *mutations >= 60000 {
			t.Errorf("seed %d: no header was refused by code %d: %v", seed, c, refusals)
		}
	}
	if refusals[0] == 0 || taken < *mutations/20 {
		t.Errorf("seed %d: %d taken, %v", seed, taken, refusals)
	}
}

// mutated changes a message once or twice.
func (d dice) mutated(b []byte) []byte {
	values := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 255, 256, 257, 10000, 1 << 16, 1 << 24, 1 << 28, 1<<28 + 1, 1 << 30, 1 << 31, 1<<32 - 4, 1<<32 - 1}
	for range 1 + d.IntN(2) {
		at := d.IntN(len(b)/wordSize+1) * wordSize
		switch {
		case at+wordSize > len(b):
			b = append(b, make([]byte, d.IntN(9))...)
			continue
		case d.IntN(8) == 0:
			b = b[:d.IntN(len(b)+1)]
		case d.IntN(8) == 0:
			b = append(b[:at:at], b[at+wordSize:]...)
		case d.IntN(8) == 0:
			b = append(b[:at+wordSize:at+wordSize], b[at:]...)
		case d.IntN(8) == 0:
			b[at+d.IntN(wordSize)] ^= 1 << d.IntN(8)
		default:
			binary.BigEndian.PutUint32(b[at:], values[d.IntN(len(values))])
		}
	}
	return b
}
