package dgrdma

import (
	"testing"
	"time"
)

// TestHeldBackAndDoubled checks that a frame of a foreign peer that the network held back until its
// id lies ahead of what comes now, and of which two copies come then, is not applied again, and
// that what the peer sends next is taken; nor are data of a younger transaction refused twice, of
// which the frames before were lost.
func TestHeldBackAndDoubled(t *testing.T) {
	const ahead = 32000
	for _, held := range []bool{true, false} {
		withFakePeer(t, Config{}, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			s.send(1, data(life, 1, 1, 64, pattern(1, 8)))
			s.recv(time.Millisecond)
			txn := uint32(life + 20)
			if held {
				txn = life - 20
			}
			for range 2 {
				s.send(ahead, data(txn, 1, 1, 64, pattern(2, 8)))
			}
			s.recv(time.Millisecond)
			if held {
				s.send(2, data(life+1, 1, 1, 64, pattern(3, 8)))
				s.recv(time.Millisecond)
			}
			if got := c.Stats().Completions; got != 2 {
				t.Errorf("held back %t: %d completions, want 2; refused %v", held, got, c.Stats().Refused)
			}
			if word := e.cfg.Memory.(*Region).Load32(0); held && word != life+2 {
				t.Errorf("the word is %d, not that of what came last", word)
			}
		})
	}
}
