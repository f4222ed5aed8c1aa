package rpcrdma

import (
	"math"
	"testing"
)

// TestLengths checks that lengths are summed in 64 bits (RPC2-030, 031): a Read list of 256 segments of 4 GiB is one that a limit can refuse.
func TestLengths(t *testing.T) {
	c := make(Chunk, MaxSegments)
	for i := range c {
		c[i].Length = math.MaxUint32
	}
	if got := c.Length(); got != MaxSegments*math.MaxUint32 {
		t.Errorf("256 segments of 2^32-1 octets: %d", got)
	}
	if got := (Chunk{{Length: 3}, {}, {Length: 5}}).Length(); got != 8 {
		t.Errorf("3, 0 and 5 octets: %d", got)
	}
	if got := (Chunk{}).Length(); got != 0 {
		t.Errorf("no segments: %d", got)
	}
	h := Header{Reads: []ReadChunk{{8, c}}}
	if got, ok := h.Unreduced(8); !ok || got != 8+MaxSegments*math.MaxUint32 {
		t.Errorf("and 8 octets of payload: %d, %v", got, ok)
	}
}

// TestUnreduced checks the length of a message with its items inserted, each rounded up, and that a Position is within
// what is there (RPC2-035, 052, 103; RPC1-028).
func TestUnreduced(t *testing.T) {
	item := func(position, n uint32) ReadChunk { return ReadChunk{position, Chunk{{Length: n}}} }
	for _, c := range []struct {
		name   string
		reads  []ReadChunk
		inline int
		want   uint64
		ok     bool
	}{
		{"nothing", nil, 40, 40, true},
		{"an item inside", []ReadChunk{item(40, 7)}, 44, 52, true},
		{"with its roundup", []ReadChunk{item(40, 8)}, 44, 52, true},
		{"an item at the end", []ReadChunk{item(40, 7)}, 40, 48, true},
		{"an item beyond the end", []ReadChunk{item(44, 7)}, 40, 0, false},
		{"the second after the first", []ReadChunk{item(40, 7), item(52, 5)}, 44, 60, true},
		{"the second beyond", []ReadChunk{item(40, 7), item(56, 5)}, 44, 0, false},
		{"the message itself", []ReadChunk{item(0, 1001)}, 0, 1001, true},
		{"the message and an item", []ReadChunk{item(0, 1000), item(1000, 5)}, 0, 1008, true},
		{"an item beyond the message", []ReadChunk{item(0, 1000), item(1004, 5)}, 0, 0, false},
	} {
		h := Header{Reads: c.reads}
		if got, ok := h.Unreduced(c.inline); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %v, want %d, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}
