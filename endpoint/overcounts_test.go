package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestOverCountedWaitsForOvertakenFrames: a younger transaction that arrives
// first says nothing about frames between it and the older one (quirk F19).
func TestOverCountedWaitsForOvertakenFrames(t *testing.T) {
	withStranger(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		mem := e.memory.(*Region)
		part := pattern(1, 16)
		s.send(8, data(2, 1, 1, 256, part))
		s.send(5, data(1, 3, 1, 64, part))
		s.send(6, data(1, 3, 2, 80, part))
		s.recv(10 * time.Millisecond)
		if got := c.Stats().Completions; got != 1 {
			t.Fatalf("%d completions before the last message came, want 1", got)
		}
		s.send(7, data(1, 3, 3, 96, part))
		s.recv(10 * time.Millisecond)
		if st := c.Stats(); st.Completions != 2 || st.Open != 0 || mem.Load32(0) != 2 {
			t.Errorf("%d completions, %d open, word %d", st.Completions, st.Open, mem.Load32(0))
		}
	})
}

// TestNoFrameIsLookedAtTwice: what waits for a frame that is missing goes on from there.
func TestNoFrameIsLookedAtTwice(t *testing.T) {
	f := newFeed(t, Config{})
	prof := FPGA()
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
	if err != nil {
		t.Fatal(err)
	}
	f.give(encode(1, 5, bare(1, 3, 1)))
	f.give(encode(1, 6, bare(1, 3, 2)))
	f.give(encode(1, 9, bare(2, 1, 1)))
	for _, x := range []struct{ came, next frame.Seq }{{7, 8}, {10, 8}} {
		f.give(encode(1, x.came, bare(3, 1, 1)))
		if in := c.rx.open.find(1); in == nil || in.first != x.next {
			t.Fatalf("after frame %d: %+v, want to wait for frame %d", x.came, in, x.next)
		}
	}
	f.give(encode(1, 8, bare(3, 1, 1)))
	if n := c.rx.open.len(); n != 0 {
		t.Errorf("%d transactions are open, all frames came", n)
	}
}
