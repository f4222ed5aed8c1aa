package ack

import "time"

// Expiry says what the passing of time asks for.
type Expiry uint8

const (
	Nothing Expiry = iota
	Probe          // a timeout: the oldest frames are lost, and NextLost offers them
	Dead           // nothing was heard for GiveUp, or the oldest frame was not acknowledged for longer: the peer is gone
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
	s.probed = heard
	s.ctl.EndBatch(now)
	return Probe
}

// deadAt returns when the peer counts as dead, if nothing is heard of it until then. A peer of which frames come is
// there: all copies of the oldest frame may have been lost. One that refuses a frame for ever, or has forgotten what it had, is not hidden by
// that for longer than twice the time to give up: nothing else tells that such a peer began again.
func (s *Sender) deadAt() Instant {
	return max(s.progress, min(max(s.heard, s.lived), s.progress.Add(s.cfg.GiveUp))).Add(s.cfg.GiveUp)
}

// Lives notes when a frame of the peer last came.
func (s *Sender) Lives(at Instant) { s.lived = at }

// believe takes copies that are acknowledged for those that arrived, when a timeout has passed since. Had it
// been the first ones, what left after them would have been acknowledged by now: it is lost.
func (s *Sender) believe(now, heard Instant) {
	if s.copied == 0 {
		return
	}
	s.arrived(s.copied)
	s.copied = 0
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

// probe declares the oldest frame lost, for by it the peer is given up, and the newest: that it
// arrives tells of all others, see believe. Frames that left a moment ago are spared, as they are on their way: they
// tell as much.
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
		first = max(first, s.atMost+s.cfg.AckDelay+Granularity) // it is of the fastest acknowledgements
	}
	first = double(first, s.timeouts, s.most())
	switch {
	case s.cfg.MaxBetween > 0 && !s.cfg.OneRun:
		return first
	case s.copied != 0 && int32(s.copied-s.slot(s.sent.head).order) > 0:
		return first // frames that left before a copy are missing: they are lost, and the path has not become longer
	}
	return double(first, s.doubled, s.cfg.MaxRTO)
}

// double doubles d so many times, up to most.
func double(d time.Duration, times uint, most time.Duration) time.Duration {
	for ; times > 0 && d < most; times-- {
		d *= 2
	}
	return min(d, most)
}

func (s *Sender) timeoutAt() Instant {
	// Whoever still acknowledges what was sent before will come to this one (RFC
	// 6298 section 5.3), be it at one run of ids in 80 ms (quirk D1-19).
	from := max(s.slot(s.sent.head).sentAt, s.heard, s.probed)
	return from.Add(s.backedOff(s.timeout()))
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
		if sl := s.slot(s.sent.head); int32(s.reached-sl.order) > 0 {
			t = min(t, sl.sentAt.Add(s.rtt.overdue()))
		}
	}
	return t, true
}
