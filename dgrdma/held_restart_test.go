package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestHeldBackIsNoRestart checks that copies of a foreign peer's first frames that the network held
// back until they lie ahead of the data that comes are not taken for a restart: a process takes
// longer to start.
func TestHeldBackIsNoRestart(t *testing.T) {
	var events []Event
	cfg := Config{OnEvent: func(ev Event) {
		if ev.Kind == PeerRestarted {
			events = append(events, ev)
		}
	}}
	withFakePeer(t, cfg, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		const now = 40000 // the ids of the first frames are ahead of it
		s.send(now, data(life, 1, 1, 64, pattern(1, 8)))
		s.recv(time.Millisecond)
		for id := range frame.Seq(3) {
			s.send(5+id, data(life-10+uint32(id), 1, 1, 64, pattern(2, 8)))
		}
		s.recv(time.Millisecond)
		s.send(now+1, data(life+1, 1, 1, 64, pattern(3, 8)))
		s.recv(time.Millisecond)
		if len(events) > 0 {
			t.Errorf("events %v", events)
		}
		if got := c.Stats().Completions; got != 2 {
			t.Errorf("%d completions, want 2; refused %v", got, c.Stats().Refused)
		}
	})
}
