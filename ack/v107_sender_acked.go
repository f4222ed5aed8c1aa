package ack

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// AppendAcked applies what a frame's header acknowledges and appends the ids
// that are acknowledged by it for the first time. Not ok: the range names ids
// that were never used; none of it is believed.
func (s *Sender) AppendAcked(dst []frame.Seq, now Instant, r Range) (acked []frame.Seq, ok bool) {
	s.fresh, s.firstAge, s.copyAge, s.allLate = 0, unknownAge, unknownAge, true
	if r.Count == 0 && !s.cfg.Cumulative {
		return dst, true
	}
	// Places from the oldest id on: ids can be compared only over half their space.
	from := r.Start.Diff(s.una)
	to := from + int(r.Count)
	if to > s.next.Diff(s.una) {
		return dst, false
	}
	if from < 0 || s.cfg.Cumulative {
		from = 0
	}
	if s.cfg.OneRun {
		s.heard = now // it works off its queue, though these be copies
	}
	first := s.una
	minimum := s.rtt.Min(now)
	for i := from; i < to && s.InFlight() > 0; i++ {
		if q := first.Add(i); s.settle(now, q, minimum) {
			dst = append(dst, q)
		}
	}
	switch copies := s.copyAge != unknownAge; {
	case copies && !s.cfg.Cumulative:
		s.fresh = 0 // it may have waited for them: an acknowledgement before this one may have been lost
	case copies && s.fresh == 0:
		s.boundCumulative(now)
	}
	if s.fresh > 0 {
		s.measured(now)
	}
	s.advance(now)
	return dst, true
}

// Measured returns the round trip that the latest AppendAcked took a sample of, if any.
func (s *Sender) Measured() (d time.Duration, ok bool) { return s.fresh, s.fresh > 0 }

func (s *Sender) settle(now Instant, q frame.Seq, minimum time.Duration) bool {
	sl := s.slot(q)
	age := now.Sub(sl.sentAt)
	rtt := time.Duration(-1)
	switch {
	case sl.state == slotFree:
		return false
	case sl.state == slotSent && sl.since == 0:
		if age < minimum/2 && s.quartered < wrapsFast {
			// Faster than the path ever was: this acknowledges an earlier use
			// of the id. If it is true after all, it will come again, and the
			// path has become faster.
			s.rtt.Faster(age)
			return false
		}
		latest := s.arrived(sl.order)
		s.allLate = false
		s.copied, s.sure = 0, false // the copies that were acknowledged before may have been the first ones
		if s.cfg.Cumulative && int32(sl.order-s.resent) < 0 {
			break // it may have waited there for a frame that was sent again
		}
		rtt = age
		if latest {
			// Only the latest frame is a measure: older ones may be acknowledged
			// late because an acknowledgement was lost.
			s.fresh = max(age, 1)
		}
	case sl.state == slotLost || age < minimum/2:
		// The first copy had only been slow: give reordering more room.
		s.reorder, s.losses = min(2*s.reorder, maxReorder), 0
	case s.cfg.Cumulative:
		// It may have waited there, unless it took as long as round trips do, and left when the first copy could not
		// come any more.
		s.sure = s.sure || s.rtt.usual(now, age) && s.late(sl)
	}
	if sl.since > 0 || sl.state == slotLost {
		s.ambiguous(now, sl)
	}
	if sl.state == slotSent {
		s.remove(&s.sent, q)
		s.flight -= int(sl.bytes)
		s.ctl.OnAcked(now, sl.order, int(sl.bytes), rtt)
	} else { // the controller knows it as lost
		s.remove(&s.lost, q)
	}
	sl.state = slotFree
	s.probing, s.timeouts, s.heard = 0, 0, now
	return true
}

// arrived notes that a sending reached the peer, and reports whether it is the
// latest one that did.
func (s *Sender) arrived(order uint32) bool {
	if int32(order-s.reached) <= 0 {
		return false
	}
	s.reached = order
	return true
}

func (s *Sender) advance(now Instant) {
	before := s.una
	if s.InFlight() == 0 {
		s.una = s.next
	}
	for s.una != s.next && s.slot(s.una).state == slotFree {
		s.una++
	}
	if s.una != before {
		s.progress = now
	}
}

// Settle takes a frame for delivered without acknowledgement, for peers that
// never send any (quirk D2-2). It reports whether the frame still waited for one.
func (s *Sender) Settle(now Instant, q frame.Seq) bool {
	if q.Before(s.una) || !q.Before(s.next) {
		return false // nothing is known of it any more
	}
	sl := s.slot(q)
	switch sl.state {
	case slotFree:
		return false
	case slotSent:
		s.remove(&s.sent, q)
		s.flight -= int(sl.bytes)
		s.ctl.OnAcked(now, sl.order, int(sl.bytes), -1)
	default: // the controller knows it as lost
		s.remove(&s.lost, q)
	}
	sl.state = slotFree
	s.advance(now)
	return true
}

// EndBatch is called when all acknowledgements of a batch were applied: it
// looks for frames that were overtaken, and lets the controller act.
func (s *Sender) EndBatch(now Instant) {
	if s.sure {
		s.arrived(s.copied)
		s.copied, s.sure = 0, false
	}
	s.findLost(now, now)
	s.ctl.EndBatch(now)
}
