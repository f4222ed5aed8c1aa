package endpoint

import (
	"testing"
	"time"
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
