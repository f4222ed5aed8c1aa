package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
)

// settleSent finishes what was sent to peers that never acknowledge.
func (e *Endpoint) settleSent() {
	var fin finished
	defer e.finish(&fin)
	now := e.now()
	for _, c := range e.settle {
		c.settleSent(now, &fin)
	}
	clear(e.settle)
	e.settle = e.settle[:0]
}

func (c *Conn) settleSent(now ack.Instant, fin *finished) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx.sent(now, fin)
	c.tx.wake(now)
}

// sent finishes what was sent to a peer that never acknowledges.
func (s *sending) sent(now ack.Instant, fin *finished) {
	for _, id := range s.unheard {
		// It may be acknowledged or given up already.
		if s.wire.settle(now, id) {
			s.settled(now, id, fin)
		}
	}
	s.unheard = s.unheard[:0]
	s.roomMade()
}
