package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestContradictionIsRefused checks that a frame is refused that contradicts one that came before.
// Of two frames whose fields disagree (DGRDMA-023) one may be forged, and the endpoint cannot tell
// which. What came first was acknowledged, and is kept; what contradicts it is not acknowledged. So
// a sender that is told that everything arrived is told the truth: the word is written (attack A16,
// SECURITY.md).
func TestContradictionIsRefused(t *testing.T) {
	honest := func(index uint16) msg { return data(life, 2, index, 56+8*uint32(index), pattern(1, 8)) }
	forged := func(index uint16, change func(*frame.Message)) msg {
		m := honest(index)
		change(&m.Message)
		return m
	}
	changes := map[string]func(*frame.Message){
		"word":  func(m *frame.Message) { m.CompletionAddr = 8 },
		"value": func(m *frame.Message) { m.CompletionValue = 77 },
		"count": func(m *frame.Message) { m.Count = 3 },
		"alone": func(m *frame.Message) { m.Count, m.Index = 1, 1 },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				s.send(2, honest(1))
				s.send(3, forged(2, change))
				if acked(s.recv(50*time.Millisecond), 3) {
					t.Error("the contradiction was acknowledged")
				}
				s.send(3, honest(2)) // the id is still free
				if !acked(s.recv(50*time.Millisecond), 3) || e.memory.(*Region).Load32(0) != life+1 {
					t.Error("the transaction did not complete, or its last frame was not acknowledged")
				}
				st := c.Stats()
				if st.RefusedBy(RefusedInconsistent) != 1 || st.Open != 0 || st.Completions != 1 || e.memory.(*Region).Load32(8) != 0 {
					t.Errorf("refused %v, %d open, %d completions", st.Refused, st.Open, st.Completions)
				}
			})
		})
		t.Run(name+" first", func(t *testing.T) {
			if name == "alone" {
				t.Skip("completes a transaction of its own: what comes after is stale, and not acknowledged")
			}
			withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				s.send(2, forged(1, change))
				s.send(3, honest(1))
				s.send(4, honest(2))
				if got := s.recv(50 * time.Millisecond); acked(got, 3) || acked(got, 4) {
					t.Error("was acknowledged, and does not complete")
				}
			})
		})
	}
}
