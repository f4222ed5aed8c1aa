package ack

import "time"

// Expiry says what the passing of time asks for.
type Expiry uint8

const (
	Nothing Expiry = iota
	Probe          // a timeout: the oldest frames are lost, and NextLost offers them
	Dead           // nothing was acknowledged for GiveUp, or the oldest frame was not for twice as long: the peer is gone
)

// Expire acts on what is overdue. All that came before heard, which is not later than now, has
// been applied: what is overdue only since then may be acknowledged by what came since.
func (s *Sender) Expire(now, heard Instant) Expiry {
	if s.InFlight() == 0 {
		return Nothing
	}
	if gap := heard.Sub(s.looked); gap > s.cfg.GiveUp/2 {
		// This process stood still, not the peer: what it sent meanwhile is
		// still to be read.
		s.progress = max(s.progress, heard.Add(-s.cfg.GiveUp/2))
	}
	s.looked = heard
	if heard >= s.deadAt() {
		return Dead
	}
	s.findLost(now, heard)
	if s.sent.n == 0 || heard < s.timeoutAt() {
		return Nothing
	}
	s.believe(now, heard)
	before := s.lost.n
	s.timedOut(now, heard)
	s.probing = s.lost.n - before
	s.timeouts++
	s.waited = true
	s.probed = heard
	s.ctl.EndBatch(now)
	return Probe
}

// deadAt returns when the peer counts as dead, if it acknowledges nothing until then. A peer that acknowledges other frames than the oldest is
// there: all copies of that one may have been lost. One that refuses a frame for ever is not hidden by them.
func (s *Sender) deadAt() Instant {
	return max(s.progress, min(s.heard, s.progress.Add(s.cfg.GiveUp))).Add(s.cfg.GiveUp)
}

// believe takes the copies that left it open whether they arrived for those that did. Had it
// been the first ones, what left behind them would have been acknowledged by now: it is lost.
func (s *Sender) believe(now, heard Instant) {
	if s.hinted == 0 {
		return
	}
	s.arrived(s.hinted)
	s.hinted = 0
	s.findLost(now, heard)
}

// timedOut declares frames lost after a timeout.
func (s *Sender) timedOut(now, heard Instant) {
	if !s.cfg.Cumulative {
		s.probe(now, heard)
		return
	}
	// Only the frame such a peer waits for moves it. That is the oldest, or a
	// later one if an acknowledgement was lost, and nothing tells which: from
	// the oldest on, more with every timeout.
	n := probes << min(s.timeouts, 8)
	for q := s.una; q != s.next && n > 0; q++ {
		if s.slot(q).state == slotSent {
			s.lose(now, q, true)
			n--
		}
	}
}

// probe declares the oldest frame lost, for by it the peer is given up, and the newest: that one
// arrived behind all others, and what it tells is true whichever copy of it did. Of the oldest the
// first copy may arrive all the same, and others behind it. Frames that left a moment ago are
// spared, as they are on their way: they tell as much.
func (s *Sender) probe(now, heard Instant) {
	if s.sent.n == 0 {
		return
	}
	before := heard.Add(-min(s.rtt.prompt(), s.timeout()))
	oldest := s.una
	if u := s.slot(oldest); u.state != slotSent || u.sentAt > before {
		oldest = s.sent.head
	}
	s.lose(now, oldest, true)
	s.slot(oldest).vague = s.sent.n > 0
	if s.sent.n > 0 && s.slot(s.sent.tail).sentAt <= before {
		s.lose(now, s.sent.tail, true)
	}
}

// MayProbe reports whether an empty frame may leave under a new id, so that a peer with cumulative
// acknowledgements says what it has. It takes a place that data has to wait for: beyond the window
// there is one such frame, and more when nothing is heard at all. Where a timeout delivers no more
// than one frame that would be this one, for ever.
func (s *Sender) MayProbe() bool {
	return s.next.Diff(s.una) < s.cfg.Span && (s.InFlight() <= s.cfg.Window || s.timeouts >= probesMore)
}

// Timeouts returns how many timeouts passed in a row.
func (s *Sender) Timeouts() int { return int(s.timeouts) }

// Quiet returns since when nothing was acknowledged.
func (s *Sender) Quiet() Instant { return s.heard }

// timeout is the first of several in a row.
func (s *Sender) timeout() time.Duration {
	return min(s.rtt.timeout(s.cfg.MinRTO, s.cfg.AckDelay), s.most())
}

// most is the longest one in a row.
func (s *Sender) most() time.Duration {
	if s.cfg.MaxBetween == 0 {
		return s.cfg.MaxRTO
	}
	most := s.cfg.MaxBetween
	if s.cfg.OneRun && s.rtt.smoothed > 0 { // a copy that leaves before the first can be named is in vain
		most = max(most, s.rtt.timeout(s.cfg.MinRTO, s.cfg.AckDelay))
	}
	return min(most, s.cfg.MaxRTO)
}

// backedOff returns how long the next one in a row is.
func (s *Sender) backedOff(first time.Duration) time.Duration {
	if s.atMost > 0 {
		first = max(first, s.atMost+s.heldBack()+Granularity)
	}
	if s.patience.most > 0 {
		first = max(first, s.lateOverdue()+Granularity)
	}
	most := s.most()
	for i := uint(0); i < s.timeouts && first < most; i++ {
		first *= 2
	}
	return min(first, most)
}

// heldBack returns how much longer than atMost a round trip may take, as that is of the fastest
// acknowledgements of a cumulative peer and of any one of others.
func (s *Sender) heldBack() time.Duration {
	if s.cfg.Cumulative {
		return s.cfg.AckDelay
	}
	return 0
}

func (s *Sender) timeoutAt() Instant {
	// Whoever still acknowledges what was sent before will come to this one (RFC
	// 6298 section 5.3), be it at one run of ids in 80 ms (quirk D1-19).
	from := max(s.slot(s.sent.head).sentAt, s.heard, s.probed)
	at := from.Add(s.backedOff(s.timeout()))
	if s.cfg.AckEvery > 0 && !s.cfg.Cumulative && s.sent.n >= s.cfg.AckEvery && s.rtt.smoothed > 0 {
		// When that many frames are there, nobody holds anything back: what is missing is
		// lost, perhaps the only acknowledgement of a whole window (RFC 8985 section 7.2).
		// With cumulative acknowledgements it may be there, too, and wait for another frame.
		q := s.sent.head
		for range s.cfg.AckEvery - 1 {
			q = s.slot(q).next
		}
		at = min(at, max(from, s.slot(q).sentAt).Add(s.backedOff(s.rtt.prompt())))
	}
	return max(at, s.patience.until)
}

// Deadline returns when Expire wants to be called.
func (s *Sender) Deadline() (t Instant, armed bool) {
	if s.InFlight() == 0 {
		return 0, false
	}
	// It is called now and then in any case, so that the time between two calls
	// tells whether this process stood still.
	t = min(s.deadAt(), s.looked.Add(s.cfg.GiveUp/4))
	if s.sent.n > 0 {
		t = min(t, s.timeoutAt())
		if s.patience.until != 0 {
			t = min(t, s.patience.until)
		}
		if q, n := s.overtaken(); n > 0 && int32(s.reached-s.slot(q).order) > 0 {
			t = min(t, s.slot(q).sentAt.Add(s.overdue()))
		}
	}
	return t, true
}
