package budget

import "testing"

// TestFit checks that a message that fills little of its chunk moves into a shorter one, and
// that the longer one is uncharged.
func TestFit(t *testing.T) {
	w := newWorld(1 << 20)
	var p Peer
	s, _, _ := w.share(&p)
	for _, c := range []struct {
		n    int
		want int64
	}{{0, 0}, {16, 64}, {256, 256}, {257, 1024}, {1024, 1024}} {
		s.Charge(SizeOf(1024))
		long := s.Chunk(1024)
		for i := range c.n {
			long.Bytes[i] = byte(i)
		}
		short := s.Fit(long, c.n)
		if p.Used() != c.want || w.Used() != c.want {
			t.Errorf("%d bytes in a chunk of 1024: %d are charged, want %d", c.n, p.Used(), c.want)
		}
		if short == nil {
			continue
		}
		for i := range c.n {
			if short.Bytes[i] != byte(i) {
				t.Fatalf("%d bytes: byte %d is %d", c.n, i, short.Bytes[i])
			}
		}
		s.Free(short)
		if p.Used() != 0 {
			t.Errorf("%d bytes are charged when all chunks are free", p.Used())
		}
	}
	if s.Fit(nil, 0) != nil {
		t.Error("a message of no bytes got a chunk")
	}
}
