package ack

import (
	"math"
	"time"
)

const unknownAge = time.Duration(math.MaxInt64)

// ambiguous notes that a frame is acknowledged of which it is unknown which copy is meant (Karn's rule).
func (s *Sender) ambiguous(now Instant, sl *slot) {
	age := now.Sub(sl.sentAt)
	if sl.state == slotSent && (!s.cfg.Cumulative || takes(s.rtt.Min(now), age)) && (s.copied == 0 || int32(sl.order-s.copied) > 0) {
		s.copied = sl.order
	}
	if s.timeouts > 0 && !s.cfg.Cumulative {
		s.doubled++
	}
	s.allLate = s.allLate && sl.state == slotSent && s.late(sl)
	s.firstAge, s.copyAge = min(s.firstAge, sl.age(now)), min(s.copyAge, age)
}

// boundCumulative concludes what is known of the round trip when all that a range of a peer with
// cumulative acknowledgements acknowledges was sent again, or waited for that. There the first copy, and
// the last, may have waited for a frame that was lost, and no single range tells that from a path
// that has become longer. If it has, all of them took as long as the round trip at least, so that
// whoever waits for the least of that, once, gets a measure: from then on nothing leaves again for
// nothing, whatever the path. If copies leave after that wait, too, frames are lost, and the copies
// are the measure, unless they waited longer than the round trip takes. What was lost when that wait
// began left without it: it is none if it was answered faster than the path ever was.
func (s *Sender) boundCumulative(now Instant) {
	if s.atMost > 0 && s.allLate && s.copyAge <= s.atMost+s.cfg.AckDelay && takes(s.rtt.Min(now), s.copyAge) {
		s.fresh = max(s.copyAge, 1)
		return
	}
	if s.unmeasured == 0 || s.firstAge < s.least {
		s.least = s.firstAge
	}
	s.unmeasured++
	switch {
	case s.rtt.smoothed == 0 || s.unmeasured > mostUnmeasured<<s.vain:
		s.atMost, s.waits, s.unmeasured = s.least, s.order, 0
	case s.atMost > s.firstAge:
		s.atMost = s.firstAge
	}
}

// late reports whether a frame left when all that had been sent before could not come any more.
func (s *Sender) late(sl *slot) bool { return s.atMost == 0 || int32(sl.order-s.waits) >= 0 }

// measured takes the sample of a range.
func (s *Sender) measured(now Instant) {
	switch {
	case s.atMost == 0:
	case s.rtt.rare(s.fresh):
		s.vain = 0
	default:
		s.vain = min(s.vain+1, mostVain)
	}
	s.rtt.Sample(now, s.fresh)
	s.atMost, s.unmeasured, s.doubled = 0, 0, 0
}
