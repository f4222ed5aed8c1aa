package pathmtu

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	// mostProbes is how many lengths a round asks for, and for one that is proven. Arbitrary: from
	// 9000 bytes it takes four rounds then, and two to be sure.
	mostProbes = 8
	// mostMissed is in how many rounds in a row a length has to be missed: as often as RFC 8899
	// has it tried (section 5.1.2, MAX_PROBES).
	mostMissed = 3
	// leastRound and mostRound bound a round, which takes two round trips in between. Arbitrary.
	leastRound = 20 * time.Millisecond
	mostRound  = time.Second
	// standsStill is how late after a round the next one begins when this process stood still. Arbitrary: several
	// times the longest round.
	standsStill = 4 * mostRound
)

// Sizes are the lengths of which a search looks for the longest that arrives: Least, and more by multiples of Step.
type Sizes struct {
	Least int // arrives on every path
	Usual int // probably arrives
	Most  int
	Step  int
}

// has reports whether the search can ask for that length.
func (s *Sizes) has(size int) bool {
	return size >= s.Least && size <= s.Most && (s.Most-size)%s.Step == 0
}

// Search looks for the longest frame that arrives at a peer.
type Search struct {
	sizes  Sizes
	proven int // the longest that arrived, or the shortest that can be asked for
	missed int // the shortest above proven that did not arrive; 0: none
	misses int // rounds in a row that missed it
	rounds int // that were answered

	probes   [mostProbes + 1]int // of this round, the longest first and a proven one last
	low      int                 // lengths above it are of this round alone
	repeats  bool                // the round before asked the same, and had no answer
	n, sent  int                 // probes of this round, and those that have left
	answered bool                // there was an answer in this round
	rtt      time.Duration       // how long answers take, about; 0: not known
	wait     time.Duration       // for the answers to this round
	began    ack.Instant
	round    ack.Instant // when this one began
	heard    ack.Instant // when an answer came last
}

// Begin begins a search. rtt is the round trip, 0 if that is not known.
func (s *Search) Begin(now ack.Instant, sizes Sizes, rtt time.Duration) {
	*s = Search{
		sizes: sizes, proven: sizes.Least, n: 1, began: now, round: now, heard: now,
		rtt: rtt, wait: max(2*rtt, leastRound),
	}
	s.probes[0] = sizes.Most
}

// MustSend reports whether a probe is to leave now.
func (s *Search) MustSend() bool { return s.sent < s.n }

// Send returns the length of the probe that leaves. The longest is the last: offload takes
// those of one length, and a shorter one after them, for a run, and all of it is lost with one.
func (s *Search) Send() int {
	s.sent++
	return s.probes[s.n-s.sent]
}

// RoundEnds returns when the round ends.
func (s *Search) RoundEnds() ack.Instant { return s.round.Add(s.wait) }

// Proven returns the longest length that arrived, or the least one.
func (s *Search) Proven() int { return s.proven }

// Rounds returns how many rounds were answered.
func (s *Search) Rounds() int { return s.rounds }

// Heard returns when the last answer came, or the search began.
func (s *Search) Heard() ack.Instant { return s.heard }

// Arrived takes the answer that a length arrived, and reports whether the search is over.
func (s *Search) Arrived(now ack.Instant, size int) (done bool) {
	if !s.sizes.has(size) {
		return false // no probe had that length
	}
	switch {
	case !s.repeats && size > s.low && size < s.probes[0]:
		s.rtt = now.Sub(s.round) // no other round asked for that
	case s.rtt == 0:
		s.rtt = now.Sub(s.began)
	}
	s.wait = max(leastRound, min(2*s.rtt, mostRound))
	s.answered, s.heard = true, now
	s.proven = max(s.proven, size)
	return s.proven == s.sizes.Most
}

// EndRound ends a round, and begins another one. It reports whether the search is over.
func (s *Search) EndRound(now ack.Instant) (done bool) {
	switch above := s.unanswered(); {
	case now > s.RoundEnds().Add(standsStill):
		s.heard = now // no answer could be heard
	case !s.answered:
		s.wait = min(2*s.wait, mostRound)
		s.round, s.sent, s.repeats = now, 0, true
		if s.n > 1 {
			return false
		}
	case above != s.missed:
		s.missed, s.misses = above, 1
		s.rounds++
	default:
		s.misses++
		s.rounds++
	}
	if s.missed <= s.proven {
		s.missed = 0
	}
	if s.missed == s.proven+s.sizes.Step && s.misses >= mostMissed {
		return true
	}
	s.round, s.answered, s.repeats = now, false, false
	s.plan()
	return false
}

// unanswered returns the shortest length of this round above those that arrived; 0: there is
// none.
func (s *Search) unanswered() (size int) {
	for _, x := range s.probes[:s.n] {
		if x > s.proven {
			size = x
		}
	}
	return size
}

// plan chooses what the next round asks for.
func (s *Search) plan() {
	high := s.sizes.Most
	if s.missed > 0 {
		high = s.missed
	}
	low := s.proven
	if high > s.sizes.Usual {
		low = max(low, s.sizes.Usual)
	}
	s.low = low
	steps := (high - low) / s.sizes.Step
	between := min(steps, mostProbes-1)
	s.n, s.sent = between+1, 0
	for i := range s.n {
		s.probes[i] = high - i*steps/between*s.sizes.Step
	}
	if low > s.proven {
		s.probes[s.n] = s.proven
		s.n++
	}
}
