package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
)

// next says whether the connection has something to send now; if it has not, at is when
// something may leave or is overdue. It alone decides that. Who changes what it looks at
// calls wake.
func (s *sending) next(now ack.Instant) (send bool, at ack.Instant) {
	send, at = s.kind.next(now)
	switch {
	case s.parting:
		return true, now
	case s.err != nil:
		return send, sched.Never // nothing is overdue any more
	case send:
		return true, now
	}
	if s.ready {
		if t, owed := s.wire.ackAt(); owed {
			if t <= now {
				return true, now
			}
			at = min(at, t)
		}
		if s.probe {
			return true, now
		}
		if _, ok := s.unacked.NextLost(now); ok {
			return true, now
		}
		_, what, until := s.obstacle(now)
		if what == mayLeave {
			return true, now
		}
		at = min(at, until)
	}
	if t, ok := s.unacked.Deadline(); ok {
		at = min(at, max(t, s.again))
	}
	if s.resting() {
		at = min(at, s.rested.Add(restAfter))
	}
	return false, at
}

// wake has the connection served if it has something to send, and reports that; else it
// has it looked at when it may have.
func (s *sending) wake(now ack.Instant) (queued bool) {
	send, at := s.next(now)
	if send {
		s.agenda.queue()
	} else {
		s.agenda.arm(now, at)
	}
	return send
}

// obstacle is what keeps new data from leaving.
type obstacle uint8

const (
	mayLeave   obstacle = iota
	mustWait            // for a time, the peer or a post
	windowFull          // of frames
	wireFull            // says the controller
)

// obstacle returns it, and when it is gone by itself; or the flow of which something may
// leave.
func (s *sending) obstacle(now ack.Instant) (q *Flow, what obstacle, until ack.Instant) {
	if s.unacked.Lost() > 0 {
		return nil, mustWait, s.paced(now) // lost frames leave first
	}
	if q = s.posted.turn(); q == nil {
		return nil, mustWait, sched.Never
	}
	switch s.unacked.Limit(now, s.frameMax) {
	case ack.WindowFull:
		return nil, windowFull, sched.Never
	case ack.Congested:
		return nil, wireFull, sched.Never
	case ack.Paced:
		return nil, mustWait, s.paced(now)
	}
	if q = s.mayBe(q); q == nil || !s.proven && s.unacked.InFlight() > 0 {
		return nil, mustWait, sched.Never
	}
	if s.untried() {
		return nil, mustWait, sched.Never // for an answer: see sizing
	}
	if until := s.holding.Add(s.cfg.Coalesce); until > now && s.small(q.first()) {
		return nil, mustWait, until
	}
	return q, mayLeave, now
}

// paced returns when the controller lets a frame go that it keeps back now.
func (s *sending) paced(now ack.Instant) ack.Instant {
	if at := s.unacked.PacedUntil(now, s.frameMax); at > now {
		return at
	}
	return sched.Never
}

// small reports whether what waits does not fill a frame, so that it is held back for
// company; t is the first of it. Nothing is held back beside a transaction that fills
// frames, which would wait with it.
func (s *sending) small(t *Transaction) bool {
	if s.cfg.Coalesce == 0 || t.Urgent || len(s.posted.amid) > 0 {
		return false
	}
	l := s.layout()
	total := 0
	for x := range s.posted.waiting() {
		bytes, _, _ := l.alone(x)
		if total += bytes; total > l.full {
			return false
		}
	}
	return true
}
