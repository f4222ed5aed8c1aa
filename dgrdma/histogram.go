package dgrdma

import (
	"math/bits"
	"time"
)

// HistogramBounds is how many bounds a [Histogram] has. They are powers of two, from
// 1.024 us, which no network beats, to 17.2 s, which is longer than GiveUp mostly.
const HistogramBounds = 25

const leastBound = 10 // its logarithm, in nanoseconds

// Histogram counts how long something took.
type Histogram struct {
	Counts [HistogramBounds + 1]uint64 // up to Bound(i), more than Bound(i-1); the last one: more than all
	Sum    time.Duration
}

// HistogramBound returns the longest time that a histogram counts at a place.
func HistogramBound(i int) time.Duration { return 1 << (leastBound + i) }

// Count returns how often it took any time.
func (h *Histogram) Count() (n uint64) {
	for _, k := range h.Counts {
		n += k
	}
	return n
}

// Add adds o to h.
func (h *Histogram) Add(o *Histogram) {
	for i, k := range o.Counts {
		h.Counts[i] += k
	}
	h.Sum += o.Sum
}

// note counts a time that n took. Both ends may have been told the same batch's: it is not
// below 0.
func (h *Histogram) note(d time.Duration, n uint64) {
	d = max(d, 0)
	i := bits.Len64(uint64(max(d, 1)-1) >> leastBound)
	h.Counts[min(i, HistogramBounds)] += n
	h.Sum += d * time.Duration(n)
}

// Times is how long things took at an endpoint.
type Times struct {
	// Completion is of transactions that are done, from the moment in which the first of
	// their frames was made until all were acknowledged. The time in the queue before is
	// not in it. A peer that never acknowledges: until all were sent.
	Completion Histogram
	// RoundTrip is of frames sent once, until their acknowledgement: one for each
	// acknowledgement that says something new.
	RoundTrip Histogram
}

// add adds o to t.
func (t *Times) add(o *Times) {
	t.Completion.Add(&o.Completion)
	t.RoundTrip.Add(&o.RoundTrip)
}

// noteRoundTrip counts the round trip that was measured last, if one was.
func (s *sending) noteRoundTrip() {
	if d, measured := s.unacked.Measured(); measured {
		s.measured().RoundTrip.note(d, 1)
	}
}

// took counts transactions that are done and began that long ago.
func (s *sending) took(d time.Duration, n uint64) {
	if n > 0 {
		s.measured().Completion.note(d, n)
		s.counters.TransactionsDone += n
	}
}

// measured returns where times are counted, of which idle connections have none.
func (s *sending) measured() *Times {
	if s.times == nil {
		s.times = new(Times)
	}
	return s.times
}
