package dgrdma

import "github.com/dgrdma/dgrdma/ack"

// heldUntil returns until when a transaction, which is next, waits for others that fill its frame, see [Config].Coalesce; now: it may leave.
func (s *sending) heldUntil(now ack.Instant, t *Transaction) ack.Instant {
	if until := s.holding.Add(s.terms.cfg.Coalesce); until > now && s.small(t) {
		return until
	}
	return now
}

// small reports whether what waits does not fill a frame, so that it is held back for
// company; t is the first of it. Nothing is held back if there is a transaction that fills
// frames, which would wait with it.
func (s *sending) small(t *Transaction) bool {
	if s.terms.cfg.Coalesce == 0 || t.Urgent || s.posted.NextPartial() != nil {
		return false
	}
	l := s.layout()
	total := 0
	for x := range s.posted.Waiting() {
		bytes, _, _ := x.uncut(&l)
		if total += bytes; total > l.Full {
			return false
		}
	}
	return true
}
