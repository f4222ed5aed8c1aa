package ack

import (
	"testing"
	"time"
)

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
		s.boundCumulative(now)
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
		s.s.atMost, s.s.unmeasured, s.s.doubled = sec, 12, 3
		s.send(1)
		s.advance(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		if s.s.atMost != 0 || s.s.unmeasured != 0 || s.s.doubled != 0 {
			t.Errorf("at most %v, unmeasured %d, doubled %d", s.s.atMost, s.s.unmeasured, s.s.doubled)
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
