package ack

import (
	"testing"
	"time"
)

// What a range of copies alone says of the round trip: it took as long as since the first ones at
// most. With a usual copy the first was lost, three times in a row; and after three times that
// nothing was a measure, the copies are. A peer with cumulative acknowledgements may have had
// them wait: a usual copy is never news, and others are not until there were twelve.
func TestSenderBound(t *testing.T) {
	type state struct {
		atMost                 time.Duration
		raised, usual, unusual uint8
		fresh                  time.Duration
	}
	const (
		first  = 40 * ms
		usual  = 12 * ms
		longer = 35 * ms
	)
	for name, c := range map[string]struct {
		cumulative, unmeasured bool
		before                 state
		copy                   time.Duration
		after                  state
	}{
		"the first":                  {copy: longer, after: state{atMost: first, raised: 1}},
		"longer than before":         {before: state{atMost: first - 1, raised: 1}, copy: longer, after: state{atMost: first, raised: 2}},
		"as long as before":          {before: state{atMost: first, raised: 2}, copy: longer, after: state{atMost: first, raised: 3}},
		"shorter than before":        {before: state{atMost: first + 1, raised: 3, usual: 2}, copy: longer, after: state{atMost: first, raised: 3, usual: 2}},
		"no measure for too long":    {before: state{atMost: 7 * ms, raised: 3}, copy: longer, after: state{atMost: 7 * ms, raised: 4, fresh: longer}},
		"which takes no time":        {before: state{raised: 3}, copy: 0, after: state{raised: 4, fresh: 1}},
		"a usual copy":               {copy: usual, after: state{usual: 1}},
		"the third":                  {before: state{usual: 2}, copy: usual, after: state{usual: 3}},
		"the fourth":                 {before: state{usual: 3}, copy: usual, after: state{atMost: first, raised: 1}},
		"an unusual one between":     {before: state{usual: 2}, copy: longer, after: state{atMost: first, raised: 1}},
		"nothing is usual yet":       {unmeasured: true, copy: usual, after: state{atMost: first, raised: 1}},
		"cumulative, usual":          {cumulative: true, before: state{usual: 3, unusual: 12}, copy: usual, after: state{usual: 3, unusual: 12}},
		"cumulative, unusual":        {cumulative: true, copy: longer, after: state{unusual: 1}},
		"cumulative, the twelfth":    {cumulative: true, before: state{unusual: 11}, copy: longer, after: state{unusual: 12}},
		"cumulative, the next":       {cumulative: true, before: state{unusual: 12}, copy: longer, after: state{atMost: first, raised: 1, unusual: 12}},
		"cumulative, never measured": {cumulative: true, unmeasured: true, copy: longer, after: state{atMost: first, raised: 1}},
	} {
		var s Sender
		s.cfg.Cumulative = c.cumulative
		now := Instant(time.Hour)
		if !c.unmeasured {
			s.rtt.Sample(now, 10*ms) // up to 30 ms are usual
		}
		s.firstAge, s.copyAge = first, c.copy
		b := c.before
		s.atMost, s.raised, s.usual, s.unusual = b.atMost, b.raised, b.usual, b.unusual
		s.bound(now)
		if got := (state{s.atMost, s.raised, s.usual, s.unusual, s.fresh}); got != c.after {
			t.Errorf("%s: %+v, want %+v", name, got, c.after)
		}
	}
}

// A measure ends all that.
func TestSenderMeasureEndsBounds(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.s.atMost, s.s.raised, s.s.usual, s.s.unusual = sec, 3, 3, 12
		s.send(1)
		s.advance(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		if s.s.atMost != 0 || s.s.raised != 0 || s.s.usual != 0 || s.s.unusual != 0 {
			t.Errorf("at most %v, raised %d, usual %d, unusual %d", s.s.atMost, s.s.raised, s.s.usual, s.s.unusual)
		}
	})
}

// Of a path that became longer, the frame that left later says so more closely.
func TestSenderLowersTheBound(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(1)
		s.advance(2 * ms)
		s.send(1)
		s.advanceToTimer()
		s.wantProbed(2, 3)
		s.resend(2, 3)
		s.stall(31 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		before := s.s.atMost
		s.ack(3, 3)
		s.wantAcked(3)
		if got := s.s.atMost; before == 0 || got != before-2*ms {
			t.Errorf("first %v, then %v", before, got)
		}
	})
}

// Round trips are usual from seven eighths of the smallest to four times the variance above
// what they mostly take.
func TestRTTUsual(t *testing.T) {
	now := Instant(time.Hour)
	var r RTT
	if r.usual(now, ms) {
		t.Error("before one was measured")
	}
	r.Sample(now, 8*ms) // the variance is half of it
	for d, want := range map[time.Duration]bool{7*ms - 1: false, 7 * ms: true, 24 * ms: true, 24*ms + 1: false} {
		if got := r.usual(now, d); got != want {
			t.Errorf("%v is usual: %v", d, got)
		}
	}
}
