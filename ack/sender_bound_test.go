package ack

import (
	"testing"
	"time"
)

// What a range of copies alone says of the round trip: it took as long as since the first ones at
// most. With a usual copy the first was lost, three times in a row; and after three times that
// nothing was a measure, the copies are.
func TestSenderBound(t *testing.T) {
	type state struct {
		atMost        time.Duration
		raised, usual uint8
		fresh         time.Duration
	}
	const (
		first  = 40 * ms
		usual  = 12 * ms
		longer = 35 * ms
		least  = 8750 * time.Microsecond // an eighth less than the smallest
	)
	for name, c := range map[string]struct {
		unmeasured bool
		before     state
		copy       time.Duration
		after      state
	}{
		"the first":               {copy: longer, after: state{atMost: first, raised: 1}},
		"longer than before":      {before: state{atMost: first - 1, raised: 1}, copy: longer, after: state{atMost: first, raised: 2}},
		"as long as before":       {before: state{atMost: first, raised: 2}, copy: longer, after: state{atMost: first, raised: 3}},
		"shorter than before":     {before: state{atMost: first + 1, raised: 3, usual: 2}, copy: longer, after: state{atMost: first, raised: 3, usual: 2}},
		"no measure for too long": {before: state{atMost: 7 * ms, raised: 3}, copy: longer, after: state{atMost: 7 * ms, raised: 3, fresh: longer}},
		"as fast as it can be":    {before: state{raised: 3, usual: 3}, copy: least, after: state{raised: 3, fresh: least}},
		"and faster":              {before: state{raised: 3}, copy: least - 1, after: state{atMost: first, raised: 3}},
		"which takes no time":     {unmeasured: true, before: state{raised: 3}, copy: 0, after: state{raised: 3, fresh: 1}},
		"a usual copy":            {copy: usual, after: state{usual: 1}},
		"the third":               {before: state{usual: 2}, copy: usual, after: state{usual: 3}},
		"the fourth":              {before: state{usual: 3}, copy: usual, after: state{atMost: first, raised: 1}},
		"an unusual one between":  {before: state{usual: 2}, copy: longer, after: state{atMost: first, raised: 1}},
		"nothing is usual yet":    {unmeasured: true, copy: usual, after: state{atMost: first, raised: 1}},
	} {
		var s Sender
		now := Instant(time.Hour)
		if !c.unmeasured {
			s.rtt.Sample(now, 10*ms) // up to 30 ms are usual
		}
		s.firstAge, s.copyAge = first, c.copy
		b := c.before
		s.atMost, s.raised, s.usual = b.atMost, b.raised, b.usual
		s.bound(now)
		if got := (state{s.atMost, s.raised, s.usual, s.fresh}); got != c.after {
			t.Errorf("%s: %+v, want %+v", name, got, c.after)
		}
	}
}

// A peer with cumulative acknowledgements may have had copies wait. After twelve ranges of them the
// least time since the first ones is waited for; a copy that leaves after that is a measure, unless
// it took longer than that.
func TestSenderBoundCumulative(t *testing.T) {
	type state struct {
		atMost     time.Duration
		unmeasured uint16
		least      time.Duration
		vain       uint8
		fresh      time.Duration
	}
	const (
		first = 40 * ms
		usual = 12 * ms
		// An eighth less than what was measured.
		shortest = 8750 * time.Microsecond
	)
	for name, c := range map[string]struct {
		first   bool // nothing was measured yet
		allLate bool
		before  state
		copy    time.Duration
		after   state
	}{
		"the first":                {copy: usual, after: state{unmeasured: 1, least: first}},
		"and an old least":         {before: state{least: ms}, copy: usual, after: state{unmeasured: 1, least: first}},
		"less than the least":      {before: state{unmeasured: 3, least: first + 1}, copy: usual, after: state{unmeasured: 4, least: first}},
		"more than the least":      {before: state{unmeasured: 3, least: first - 1}, copy: usual, after: state{unmeasured: 4, least: first - 1}},
		"the twelfth":              {before: state{unmeasured: 11, least: first - 1}, copy: usual, after: state{unmeasured: 12, least: first - 1}},
		"the next":                 {before: state{unmeasured: 12, least: first - 1}, copy: usual, after: state{atMost: first - 1, least: first - 1}},
		"after one in vain":        {before: state{unmeasured: 23, least: first, vain: 1}, copy: usual, after: state{unmeasured: 24, least: first, vain: 1}},
		"and the next":             {before: state{unmeasured: 24, least: first, vain: 1}, copy: usual, after: state{atMost: first, least: first, vain: 1}},
		"never measured":           {first: true, copy: usual, after: state{atMost: first, least: first}},
		"waiting":                  {before: state{atMost: first}, copy: usual, after: state{atMost: first, unmeasured: 1, least: first}},
		"waiting for longer":       {before: state{atMost: first + 1}, copy: usual, after: state{atMost: first, unmeasured: 1, least: first}},
		"a late copy":              {allLate: true, before: state{atMost: 30 * ms}, copy: usual, after: state{atMost: 30 * ms, fresh: usual}},
		"as fast as it can be":     {allLate: true, before: state{atMost: 30 * ms}, copy: shortest, after: state{atMost: 30 * ms, fresh: shortest}},
		"and faster":               {allLate: true, before: state{atMost: 30 * ms}, copy: shortest - 1, after: state{atMost: 30 * ms, unmeasured: 1, least: first}},
		"which takes no time":      {first: true, allLate: true, before: state{atMost: 30 * ms}, copy: 0, after: state{atMost: 30 * ms, fresh: 1}},
		"as long as can be":        {allLate: true, before: state{atMost: 30 * ms}, copy: 32 * ms, after: state{atMost: 30 * ms, fresh: 32 * ms}},
		"or it waited":             {allLate: true, before: state{atMost: 30 * ms}, copy: 32*ms + 1, after: state{atMost: 30 * ms, unmeasured: 1, least: first}},
		"late without such a wait": {allLate: true, copy: usual, after: state{unmeasured: 1, least: first}},
	} {
		s := Sender{cfg: SenderConfig{Cumulative: true, AckDelay: 2 * ms}}
		now := Instant(time.Hour)
		if !c.first {
			s.rtt.Sample(now, 10*ms) // up to 30 ms are usual
		}
		s.firstAge, s.copyAge, s.allLate, s.order = first, c.copy, c.allLate, 77
		b := c.before
		s.atMost, s.unmeasured, s.least, s.vain = b.atMost, b.unmeasured, b.least, b.vain
		s.bound(now)
		if got := (state{s.atMost, s.unmeasured, s.least, s.vain, s.fresh}); got != c.after {
			t.Errorf("%s: %+v, want %+v", name, got, c.after)
		}
		if set := s.waits == 77; set != (b.atMost == 0 && c.after.atMost > 0) {
			t.Errorf("%s: waits from %d on", name, s.waits)
		}
	}
}

// A wait that ends with a measure like those before was in vain, so that the next one comes later;
// one that was rare says that the path has become longer. Without a wait neither tells.
func TestSenderWaitsInVain(t *testing.T) {
	for _, c := range []struct {
		atMost, took time.Duration
		before, want uint8
	}{{40 * ms, 30 * ms, 0, 1}, {40 * ms, 30 * ms, 2, 3}, {40 * ms, 30 * ms, 3, 3}, {40 * ms, 31 * ms, 3, 0}, {0, 30 * ms, 2, 2}, {0, 31 * ms, 2, 2}} {
		s := Sender{vain: c.before, atMost: c.atMost, fresh: c.took}
		now := Instant(time.Hour)
		s.rtt.Sample(now, 10*ms)
		if s.measured(now); s.vain != c.want || s.atMost != 0 {
			t.Errorf("%+v: in vain %d times, at most %v", c, s.vain, s.atMost)
		}
	}
}

// A measure ends all that.
func TestSenderMeasureEndsBounds(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.s.atMost, s.s.raised, s.s.usual, s.s.unmeasured = sec, 3, 3, 12
		s.send(1)
		s.advance(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		if s.s.atMost != 0 || s.s.raised != 0 || s.s.usual != 0 || s.s.unmeasured != 0 {
			t.Errorf("at most %v, raised %d, usual %d, unmeasured %d", s.s.atMost, s.s.raised, s.s.usual, s.s.unmeasured)
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
