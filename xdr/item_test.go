package xdr

import "testing"

// TestPosition checks that the offset of an item counts those before it with their padding (RPC2-035).
func TestPosition(t *testing.T) {
	var e Encoder
	e.Uint32(1)
	e.Bulk(make([]byte, 5))
	e.Bulk(make([]byte, 8))
	e.Uint64(1)
	e.Bulk(make([]byte, 1))
	for i, want := range []int{8, 8 + 8 + 4, 20 + 8 + 8 + 4} {
		if got := Position(e.Items(), i); got != want {
			t.Errorf("item %d is at %d, want %d", i, got, want)
		}
	}
}
