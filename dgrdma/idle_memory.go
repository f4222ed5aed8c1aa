package dgrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// restAfter is how long nothing was done when a connection gives back the
// memory that it has for frames in flight. Arbitrary: rare, compared with what it saves.
const restAfter = time.Second

// resting reports whether there is such memory and nothing is in flight.
func (s *sending) resting() bool { return s.unacked.InFlight() == 0 && s.inFlight.Places() > 0 }

// rest gives it back.
func (s *sending) rest() {
	s.unacked.Shrink()
	s.inFlight.Rest()
	if r, ok := s.ctl.(ack.Resting); ok {
		r.Rest()
	}
}
