package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/run"
)

// step is what a connection has to send, in the order in which it leaves.
type step uint8

const (
	nothing    step = iota
	lostFrame       // a frame that was lost, again
	newData         // of what is posted
	aProbe          // that has the peer speak
	ackOnly         // what the peer is owed, in a frame without data
	disconnect      // nothing comes any more
)

// build adds what the connection has to send to the batch, until the batch is full, or due says that nothing
// may leave now. It reports whether the batch became full before everything was in; else the connection is served again when
// something may leave.
func (s *sending) build(b *outgoing.Batch, now ack.Instant) (more bool) {
	// Before the frames leave, so that no acknowledgement seems to be of unsent ones.
	defer func() { s.terms.nextID.Store(s.unacked.Next()) }()
	b.Mark(s.mark())
	if s.kind.introduce(b, now) {
		return true
	}
	if s.err != nil && !s.disconnecting {
		return false
	}
	s.inFlight.ReleaseSent()
	for counted := false; ; {
		what, t, why, _ := s.due(now)
		data := what == lostFrame || what == newData
		if !data && !counted {
			counted = true
			s.noteObstacle(now, why)
		}
		if what != nothing && (b.IsFull() || data && s.inFlight.MayRemake() && !b.Fits(s.inFlight.FullLength())) {
			return true
		}
		switch what {
		case lostFrame:
			s.buildLost(b, now)
			continue
		case newData:
			s.buildNew(b, now, t)
			continue
		case aProbe:
			s.probe = false
			s.wire.buildProbe(b, now)
			continue
		case ackOnly:
			if s.wire.buildAck(b, now) {
				continue
			}
		}
		break
	}
	if s.disconnecting {
		s.kind.buildDisconnect(b, now)
		s.disconnecting = false
	}
	s.wake(now)
	return false
}

// due returns what leaves next, for new data the transaction that it is of, or that nothing does: then at is when something may, and why
// what keeps new data back. It alone decides that. A goroutine that changes what it looks at calls wake.
func (s *sending) due(now ack.Instant) (what step, t *Transaction, why obstacle, at ack.Instant) {
	at = run.Never
	if s.err == nil {
		if _, ok := s.unacked.NextLost(now); ok {
			return lostFrame, nil, mayLeave, now
		}
		if s.ready {
			if t, why, at = s.obstacle(now); why == mayLeave {
				return newData, t, why, now
			}
		} else if s.unacked.Lost() > 0 {
			at = s.paced(now)
		}
	}
	if s.probe {
		return aProbe, nil, why, now
	}
	// A connection that disconnects leaves no pending acknowledgement, also where it began to after now.
	if until, owed := s.wire.ackAt(); owed {
		if until <= now || s.disconnecting {
			return ackOnly, nil, why, now
		}
		at = min(at, until)
	}
	if s.disconnecting {
		return disconnect, nil, why, now
	}
	return nothing, nil, why, at
}

// next says whether the connection has something to send now; if it has not, at is when something may leave or is overdue.
func (s *sending) next(now ack.Instant) (send bool, at ack.Instant) {
	send, at = s.kind.next(now)
	switch {
	case s.disconnecting:
		return true, now
	case s.err != nil:
		return send, run.Never // nothing is overdue any more
	case send:
		return true, now
	}
	what, _, _, until := s.due(now)
	if what != nothing {
		return true, now
	}
	at = min(at, until)
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
	mustWait            // for a time, or for lost frames
	noData              // until the program posts some, or the peer ends or allows something
	windowFull          // of frames
	wireFull            // says the controller
)

// obstacle returns it, and when it is gone by itself; or the transaction of which something may
// leave.
func (s *sending) obstacle(now ack.Instant) (t *Transaction, what obstacle, until ack.Instant) {
	if s.unacked.Lost() > 0 {
		return nil, mustWait, s.paced(now) // lost frames leave first
	}
	if t = s.posted.Next(); t == nil {
		return nil, noData, run.Never
	}
	switch s.unacked.Limit(now, s.path.Size()) {
	case ack.WindowFull:
		return nil, windowFull, run.Never
	case ack.Congested:
		return nil, wireFull, run.Never
	case ack.Paced:
		return nil, mustWait, s.paced(now)
	}
	if !s.proven && s.unacked.InFlight() > 0 {
		return nil, noData, run.Never
	}
	if t, until = s.leaving(now, t); t == nil && s.posted.PassAgain() {
		t, until = s.leaving(now, s.posted.Next())
	}
	if t == nil {
		return nil, noData, until
	}
	return t, mayLeave, now
}

// leaving returns next, the transaction that is next, or another one of which something may leave in its place; nil: nothing may
// until then.
func (s *sending) leaving(now ack.Instant, next *Transaction) (t *Transaction, until ack.Instant) {
	t = s.nextToLeave(next)
	if t == nil || s.mustKnowPathMTU(t) { // that is known by an answer: see package pathmtu
		return nil, run.Never
	}
	if until = s.heldUntil(now, t); until > now {
		return nil, until
	}
	return t, now
}

// noteObstacle counts that new data was kept back, or tells the controller that there is none.
func (s *sending) noteObstacle(now ack.Instant, why obstacle) {
	switch why {
	case noData:
		s.unacked.AppLimited(now)
	case windowFull:
		s.counters.WindowFull++
	case wireFull:
		s.counters.Congested++
	}
}

// paced returns when the controller lets a frame go that it keeps back now.
func (s *sending) paced(now ack.Instant) ack.Instant {
	if at := s.unacked.PacedUntil(now, s.path.Size()); at > now {
		return at
	}
	return run.Never
}

// nextToLeave returns next, the transaction that is next, or a partial one if next may not begin; nil: there is none.
func (s *sending) nextToLeave(next *Transaction) *Transaction {
	if next == nil || next.entry.HasBegun() || s.mayBegin(next) || s.mayOpen() && !s.isLong(next) {
		return next
	}
	return s.posted.NextPartial()
}

// mayBegin reports whether a transaction, which is next and has not begun, may begin, however long it is.
func (s *sending) mayBegin(t *Transaction) bool {
	return s.mayOpen() && s.posted.MayLeavePartial(&t.entry)
}

// isLong reports whether a transaction takes more than a frame.
func (s *sending) isLong(t *Transaction) bool {
	l := s.layout()
	_, _, fits := t.uncut(&l)
	return !fits
}

// mayOpen reports whether the peer can take one more transaction, of which nothing was
// sent.
func (s *sending) mayOpen() bool {
	oldest := s.posted.Oldest()
	return oldest == nil || int(s.nextTxn-oldest.id) < s.terms.profile.OpenTransactions
}
