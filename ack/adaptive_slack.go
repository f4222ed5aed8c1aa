package ack

import "time"

// The numbers of adaptiveSlack, chosen as those of Adaptive.
const (
	// adaptiveSlackFrames is the most: what offloaded links need, which were measured
	// at 220, with acknowledgements once per receive batch and a minimum round trip
	// of one small frame that is far below what full bursts need.
	adaptiveSlackFrames = 256

	// adaptiveSlackTime is what batches on both sides take, at a rate that is known.
	// Those links are so fast that it comes to more than 256 frames there; at 1 Gbit/s
	// it is 21.
	adaptiveSlackTime = 250 * time.Microsecond

	// adaptiveSlackLeast is the least, in frames: enough for a burst to be seen as one.
	adaptiveSlackLeast = 16

	adaptiveBurstMemory = 200 * time.Millisecond // half of the time that a burst is remembered
	adaptiveJudgeTime   = 20 * time.Millisecond  // several turns of a busy processor
	adaptiveSteady      = 1.0 / 16               // rates that differ by less are the same
	adaptiveSlackHold   = 2 * time.Second        // a hundred times what a vain attempt takes
)

// adaptiveSlack is how much may be in flight beyond rate times minimum round trip. Where
// acknowledgements come evenly it stands in a queue, in which whatever is sent next has
// to wait. So it is no more than they are seen to need: what comes in one burst beyond
// what the rate explains (BBR calls it extra_acked), and a little time.
//
// Round trips can be longer than the minimum for other reasons, jitter or a path that
// changed. Then a smaller window makes the rate fall, and the lower rate the window. When
// the rate falls the slack is therefore whole for a while, as it is at first.
type adaptiveSlack struct {
	// A burst lasts while more is acknowledged than the rate explains.
	began    Instant
	from, to int64    // bytes delivered when it began, and until now
	burst    [2]int64 // bytes beyond the rate: the largest of late, and before
	shifted  Instant  // when that became before

	// The average over many rounds, as the fastest of them are those without a pause.
	bytes  int64 // delivered in rounds that the window limited
	took   time.Duration
	rounds int
	best   float64 // rate, bytes per ns, since it was last taken for granted
	tight  bool    // the slack is no more than seems to be needed
	until  Instant // it is not tight before
}

// gather is told how much was delivered so far, after every batch of
// acknowledgements.
func (s *adaptiveSlack) gather(now Instant, delivered int64, rate float64) {
	length := now.Sub(s.began)
	expected := int64(min(rate*float64(length), float64(adaptiveUnlimited)))
	if s.to-s.from <= expected || length > adaptiveJudgeTime {
		s.began, s.from, expected = now, s.to, 0
	}
	s.to = delivered
	s.burst[0] = max(s.burst[0], s.to-s.from-expected)
}

// judge is told of each round that the window limited.
func (s *adaptiveSlack) judge(now Instant, delivered int64, took time.Duration) {
	s.bytes += delivered
	s.took += took
	if s.rounds++; s.rounds < adaptiveRateRounds || s.took < adaptiveJudgeTime {
		return
	}
	rate := float64(s.bytes) / float64(s.took)
	s.bytes, s.took, s.rounds = 0, 0, 0
	faster, slower := rate > s.best*(1+adaptiveSteady), rate < s.best*(1-adaptiveSteady)
	switch {
	case faster: // and what ran ahead of the rate was the rate
		s.burst, s.shifted = [2]int64{}, now
	case now.Sub(s.shifted) > adaptiveBurstMemory:
		s.burst, s.shifted = [2]int64{0, s.burst[0]}, now
	}
	switch {
	case !s.tight:
		s.best = rate
		s.tight = !faster && !slower && now >= s.until
	case slower:
		s.tight, s.until = false, now.Add(adaptiveSlackHold)
	default:
		s.best = max(s.best, rate)
	}
}

// grant returns how many bytes may be in flight beyond bdp, which is rate times minimum
// round trip. As much again may be in any case: without it no rate would double.
func (s *adaptiveSlack) grant(rate float64, bdp, mtu int64) int64 {
	most := bdp + adaptiveSlackFrames*mtu
	if !s.tight {
		return most
	}
	burst := max(s.burst[0], s.burst[1])
	return min(most, max(bdp, adaptiveSlackLeast*mtu,
		int64(rate*float64(adaptiveSlackTime)), burst+burst/4+adaptiveMinimumFrames*mtu))
}
