package ack

import "time"

// minWindow is how long a smallest round trip counts: paths change, and a
// minimum that is never reached again must be forgotten. Arbitrary.
const minWindow = 5 * time.Second

// RTT is the smoothed round-trip time (RFC 6298) and its recent minimum.
type RTT struct {
	smoothed, variance, latest time.Duration
	assumed                    bool // smoothed is no measurement

	min, nextMin time.Duration // of the current window and the one before
	windowEnd    Instant
}

// Sample takes one measurement, from a frame that was sent once (Karn's rule), or where there
// is none, see Sender.boundCumulative, from the last copy of one.
func (r *RTT) Sample(now Instant, d time.Duration) {
	d = max(d, time.Nanosecond)
	r.latest = d
	if r.smoothed == 0 || r.assumed {
		r.smoothed, r.variance, r.assumed = d, d/2, false
		r.min, r.nextMin, r.windowEnd = d, d, now.Add(minWindow)
		return
	}
	diff := r.smoothed - d
	if diff < 0 {
		diff = -diff
	}
	r.variance += (diff - r.variance) / 4
	r.smoothed += (d - r.smoothed) / 8
	if now > r.windowEnd {
		r.min, r.nextMin, r.windowEnd = r.nextMin, d, now.Add(minWindow)
	}
	r.nextMin = min(r.nextMin, d)
	r.min = min(r.min, d)
}

// Assume has timeouts begin with a round trip that is no measurement, as it may be shorter: until the first one.
func (r *RTT) Assume(d time.Duration) {
	if r.smoothed == 0 {
		r.smoothed, r.variance, r.assumed = d, d/2, true
	}
}

// Smoothed returns the smoothed round-trip time; 0 before the first sample.
func (r *RTT) Smoothed() time.Duration { return r.smoothed }

// Latest returns the latest sample; 0 before the first one.
func (r *RTT) Latest() time.Duration { return r.latest }

// Min returns the smallest recent round-trip time; 0 if there is none. It
// expires even without samples, so that a rule built on it cannot keep itself
// from ever getting one.
func (r *RTT) Min(now Instant) time.Duration {
	if now > r.windowEnd.Add(minWindow) {
		return 0
	}
	return r.min
}

// Faster notes a round trip that was not believed: if it was true, the next one
// will be.
func (r *RTT) Faster(d time.Duration) {
	r.min = min(r.min, d)
	r.nextMin = min(r.nextMin, d)
}

// takes reports whether a path whose smallest round trip is least can be as fast as d, with an
// eighth of allowance.
func takes(least, d time.Duration) bool { return d >= least-least/8 }

// usual reports whether round trips take that long.
func (r *RTT) usual(now Instant, d time.Duration) bool {
	return r.smoothed > 0 && takes(r.Min(now), d) && !r.rare(d)
}

// rare reports whether that is longer than nearly all round trips.
func (r *RTT) rare(d time.Duration) bool { return d > r.smoothed+4*r.variance }

// timeout returns how long to wait for an acknowledgement.
func (r *RTT) timeout(least time.Duration, ackDelay time.Duration) time.Duration {
	if r.smoothed == 0 {
		// Nothing is known, but that the path is a short one: see FlightConfig.FirstRTO.
		return max(4*least, ackDelay+least)
	}
	return max(least, r.smoothed+4*r.variance+ackDelay)
}

// Granularity is how long at least a deadline is behind what it waits for (RFC 9002 section
// 6.2.1, which takes a millisecond). A timer of a Go program is late by 0.05 to 0.1 ms, and
// the round trip of a local link is no longer: with a millisecond, 5 % loss of bursts and
// acknowledgements on such a link costs a tenth of the throughput more.
const Granularity = time.Millisecond / 2

// prompt returns how long to wait for an acknowledgement that the peer does not hold back
// (RFC 9002 section 6.2.1).
func (r *RTT) prompt() time.Duration { return r.smoothed + max(4*r.variance, Granularity) }

// recent returns how long round trips take now, at least mostly.
func (r *RTT) recent() time.Duration { return max(r.smoothed, r.latest) }

// overdue returns how long after sending a frame is lost once later ones were
// acknowledged (RFC 9002 section 6.1.2).
func (r *RTT) overdue() time.Duration {
	t := r.recent()
	return max(t+t/8, time.Millisecond)
}
