package datagram

import "testing"

// TestKinds: flags and length tell what a datagram is, and all others are none of ours.
func TestKinds(t *testing.T) {
	of := func(flags byte, n int) []byte {
		b := make([]byte, n)
		b[FlagsAt] = flags
		return b
	}
	for _, c := range []struct {
		name  string
		data  []byte
		want  Kind
		index byte
	}{
		{"shortest", of(0x80, 46), Sealed, 0},
		{"too short", of(0x80, 45), Plain, 0},
		{"long", of(0x8e, 9000), Sealed, 7},
		{"a reserved flag", of(0x81, 100), Plain, 0},
		{"another", of(0x90, 100), Plain, 0},
		{"a third", of(0xa0, 100), Plain, 0},
		{"a frame", of(0x01, 100), Plain, 0},
		{"question", of(0xc0, 46), Question, 0},
		{"challenge", of(0xc2, 46), Challenge, 0},
		{"first", of(0xc4, 104), First, 0},
		{"second", of(0xc6, 104), Second, 0},
		{"no fifth", of(0xc8, 104), Plain, 0},
		{"another length", of(0xc4, 92), Plain, 0},
		{"another length of a second", of(0xc6, 76), Plain, 0},
		{"cut off", make([]byte, FlagsAt), Plain, 0},
	} {
		if k := KindOf(c.data); k != c.want {
			t.Errorf("%s: %v, want %v", c.name, k, c.want)
		} else if k == Sealed && Index(c.data) != c.index {
			t.Errorf("%s: key %d, want %d", c.name, Index(c.data), c.index)
		} else if k.IsHandshake() && (k.Size() != len(c.data) || k.Flags() != c.data[FlagsAt]) {
			t.Errorf("%s: %d bytes, flags %#x", c.name, k.Size(), k.Flags())
		}
	}
}

// TestCounter: it has 40 bits.
func TestCounter(t *testing.T) {
	b := make([]byte, HeadSize)
	for _, n := range []uint64{0, 1, 0x0102030405, 1<<40 - 1} {
		if PutUint40(b[IDsSize:], n); Counter(b) != n {
			t.Errorf("%#x, want %#x", Counter(b), n)
		}
	}
}
