package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestHeldBackForHalfOfAllIDs: copies of a foreign peer's frames that the network held back
// until they lie ahead of what comes now bring back neither ids nor data, though several
// come; one is believed that comes again, or behind another one, when nothing else came for a second.
func TestHeldBackForHalfOfAllIDs(t *testing.T) {
	const half = 32000
	for _, acks := range []bool{false, true} { // what is held back
		withFakePeer(t, Config{}, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			s.send(1, data(life, 1, 1, 64, pattern(1, 8)))
			held := func() {
				for id := range frame.Seq(3) {
					if acks {
						s.send(half)
						s.send(2) // the present one
					} else {
						s.send(half+id, data(life-10+uint32(id), 1, 1, 64, pattern(2, 8)))
					}
				}
				s.recv(time.Millisecond)
			}
			held()
			s.send(2, data(life+1, 1, 1, 64, pattern(3, 8)))
			s.recv(time.Millisecond)
			if got := c.Stats().Completions; got != 2 {
				t.Errorf("acknowledgements %v: %d completions, want 2; refused %v", acks, got, c.Stats().Refused)
			}
			if acks {
				return
			}
			time.Sleep(heldBack)
			held()
			if got := c.Stats().Completions; got != 4 { // the first is the witness
				t.Errorf("after a second %d completions, want 4; refused %v", got, c.Stats().Refused)
			}
		})
	}
}
