package budget

import "testing"

// TestSizes checks that a chunk of each length is the shortest power of two that holds it.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		n    int
		size int64
	}{{0, 0}, {1, 64}, {64, 64}, {65, 128}, {128, 128}, {129, 256}, {1<<20 + 1, 1 << 21}, {MostChunk, MostChunk}} {
		if got := SizeOf(c.n); got != c.size {
			t.Errorf("%d bytes take %d, want %d", c.n, got, c.size)
		}
		var free chunkCache
		if b := free.take(c.n); b == nil != (c.n == 0) || b != nil && int64(len(b.Bytes)) != c.size {
			t.Errorf("the chunk for %d bytes: %v", c.n, b != nil)
		}
	}
}
