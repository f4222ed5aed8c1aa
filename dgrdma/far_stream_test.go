package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestStreamAfterAnOutage checks that a peer of another kind whose frames were lost for so long
// that its next ids need a second frame as proof is taken from the second frame on, if it writes
// younger transactions: those that never send again would lose all that comes within a second.
func TestStreamAfterAnOutage(t *testing.T) {
	for _, prof := range []Profile{OpenCPI(false), OpenCPI2(), FPGA()} {
		withFakePeer(t, Config{}, prof, func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			const before, behind = 4, 20
			id, txn := frame.Seq(1), uint32(life)
			send := func() {
				s.send(id, data(txn, 1, 1, 64, pattern(1, 8)))
				s.recv(time.Millisecond)
				id, txn = id.Add(1), txn+1
			}
			for range before {
				send()
			}
			lost := prof.Ahead + 100
			id, txn = id.Add(lost), txn+uint32(lost)
			for range behind {
				send()
			}
			if got := c.Stats().Completions; got != before+behind-1 {
				t.Errorf("%s: %d completions, want %d; refused %v", prof.Name, got, before+behind-1, c.Stats().Refused)
			}
		})
	}
}

// TestHeldBackAcksMoveNothing checks that acknowledgements that the network held back until they
// lie ahead of a peer's data do not have what comes next refused, though they have several ids.
func TestHeldBackAcksMoveNothing(t *testing.T) {
	withFakePeer(t, Config{}, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(1, data(life, 1, 1, 64, pattern(1, 8)))
		for id := range frame.Seq(3) {
			s.send(32000 + id)
		}
		s.send(2, data(life+1, 1, 1, 64, pattern(3, 8)))
		s.recv(time.Millisecond)
		if got := c.Stats().Completions; got != 2 {
			t.Errorf("%d completions, want 2; refused %v", got, c.Stats().Refused)
		}
	})
}
