package ack

import "time"

// Expire acts on what is overdue. All that came before heard, which is not later than now, has been applied: what is overdue only since
// then may be acknowledged by what came since.
func (f *Flight) Expire(now, heard Instant) Expiry {
	if f.InFlight() == 0 {
		return Nothing
	}
	if gap := heard.Sub(f.looked); gap > f.cfg.GiveUp/2 {
		// This process stood still, not the peer: what the peer sent during that time is still to be read.
		f.progress = max(f.progress, heard.Add(-f.cfg.GiveUp/2))
	}
	f.looked = heard
	if heard >= f.deadAt() {
		return Dead
	}
	f.findLost(now, heard)
	if f.wire.n == 0 || heard < f.timeoutAt() {
		return Nothing
	}
	before := f.lost.n
	f.timedOut(now, heard)
	f.probing = f.lost.n - before
	f.timeouts++
	f.probed, f.withheld.leaves = heard, f.withheld.has
	f.marks.silent(f.timeouts)
	f.ctl.EndBatch(now)
	return Probe
}

// deadAt returns when the peer counts as dead, if nothing is heard of it until then. A peer of which frames come is there: all copies of
// the oldest frame may have been lost, or what answered them. One that never gets a frame, or refuses it for ever, is
// not hidden by that: it had many copies.
func (f *Flight) deadAt() Instant {
	heard := max(f.heard, f.lived)
	if f.frame(f.oldest).copies >= mostCopies {
		heard = min(heard, f.progress.Add(f.cfg.GiveUp))
	}
	return max(f.progress, heard).Add(f.cfg.GiveUp)
}

// Lives notes when a frame of the session last came.
func (f *Flight) Lives(at Instant) { f.lived = at }

// Progress returns since when the oldest frame waits, or an older one did.
func (f *Flight) Progress() Instant { return f.progress }

// timedOut declares the oldest frame lost, for which the peer may wait, and the newest, whose arrival tells of all
// others. A newest one that has just left is on its way.
func (f *Flight) timedOut(now, heard Instant) {
	before := heard.Add(-min(f.rtt.prompt(), f.timeout()))
	f.lose(now, f.frame(f.wire.head), true)
	if f.wire.n > 0 {
		if s := f.frame(f.wire.tail); s.last <= before {
			f.lose(now, s, true)
		}
	}
}

// Timeouts returns how many timeouts passed in a row.
func (f *Flight) Timeouts() int { return int(f.timeouts) }

// Quiet returns since when nothing was acknowledged.
func (f *Flight) Quiet() Instant { return f.heard }

// timeout is the first of several in a row.
func (f *Flight) timeout() time.Duration {
	if f.rtt.smoothed == 0 && f.cfg.FirstRTO > 0 {
		return min(f.cfg.FirstRTO, f.cfg.MaxRTO)
	}
	return min(f.rtt.timeout(f.cfg.MinRTO, f.cfg.AckDelay), f.cfg.MaxRTO)
}

// backedOff returns how long the next one in a row is.
func (f *Flight) backedOff(first time.Duration) time.Duration {
	first = max(first, f.rtt.recent()+f.late+Granularity)
	for i := uint(0); i < f.timeouts && first < f.cfg.MaxRTO; i++ {
		first *= 2
	}
	return min(first, f.cfg.MaxRTO)
}

func (f *Flight) timeoutAt() Instant {
	// A peer that still acknowledges what left before will come to this one (RFC 6298 section 5.3).
	from := max(f.frame(f.wire.head).last, f.heard, f.probed)
	at := from.Add(f.backedOff(f.timeout()))
	if f.cfg.AckEvery > 0 && f.wire.n >= f.cfg.AckEvery && f.rtt.smoothed > 0 {
		// When that many frames have arrived the peer holds nothing back: what is missing is lost, perhaps the only
		// acknowledgement of a whole window (RFC 8985 section 7.2).
		id := f.wire.head
		for range f.cfg.AckEvery - 1 {
			id = f.frame(id).next
		}
		at = min(at, max(from, f.frame(id).last).Add(f.backedOff(f.rtt.prompt())))
	}
	return at
}

// Deadline returns when Expire is to be called. Not armed: nothing waits.
func (f *Flight) Deadline() (t Instant, armed bool) {
	if f.InFlight() == 0 {
		return 0, false
	}
	// It is called now and then in any case: the time between two calls tells whether this process stood still.
	t = min(f.deadAt(), f.looked.Add(f.cfg.GiveUp/4))
	if f.wire.n > 0 {
		t = min(t, f.timeoutAt())
		if s := f.frame(f.wire.head); int32(f.reached-s.order) > 0 {
			t = min(t, s.last.Add(f.overdue()))
		}
	}
	return t, true
}
