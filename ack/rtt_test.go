package ack

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

func TestRTTSmoothing(t *testing.T) {
	var r RTT
	if r.Smoothed() != 0 || r.Min(0) != 0 {
		t.Fatal("a round trip is known before the first sample")
	}
	if got := r.timeout(10*ms, 2*ms); got != 40*ms {
		t.Errorf("first timeout %v, want 40ms", got)
	}
	if got := r.timeout(5*ms, 90*ms); got != 95*ms {
		t.Errorf("first timeout %v, want room for the peer's delay: 95ms", got)
	}
	// RFC 6298 section 2.2 and 2.3.
	r.Sample(0, 80*ms)
	if r.smoothed != 80*ms || r.variance != 40*ms {
		t.Errorf("after the first sample %v and %v, want 80ms and 40ms", r.smoothed, r.variance)
	}
	r.Sample(0, 160*ms)
	if r.smoothed != 90*ms || r.variance != 50*ms {
		t.Errorf("after the second sample %v and %v, want 90ms and 50ms", r.smoothed, r.variance)
	}
	r.Sample(0, 10*ms)
	if r.smoothed != 80*ms || r.variance != 57500*time.Microsecond {
		t.Errorf("after the third sample %v and %v, want 80ms and 57.5ms", r.smoothed, r.variance)
	}
	if got := r.timeout(10*ms, 2*ms); got != 312*ms {
		t.Errorf("timeout %v, want 312ms", got)
	}
	if got := r.timeout(sec, 2*ms); got != sec {
		t.Errorf("timeout %v, want the least", got)
	}
}

func TestRTTDegenerateSamples(t *testing.T) {
	var r RTT
	for range 100 {
		r.Sample(0, 0)
	}
	r.Sample(0, -sec)
	if r.Smoothed() <= 0 || r.timeout(ms, 0) < ms || r.overdue() < ms {
		t.Errorf("round trip %v, timeout %v, overdue %v", r.Smoothed(), r.timeout(ms, 0), r.overdue())
	}
}

// A minimum that is never reached again is forgotten, with samples and without.
func TestRTTMin(t *testing.T) {
	var r RTT
	now := Instant(time.Hour)
	r.Sample(now, 10*ms)
	r.Sample(now, 20*ms)
	r.Sample(now, 20*ms)
	if got := r.Min(now); got != 10*ms {
		t.Fatalf("minimum %v, want 10ms", got)
	}
	for range 21 {
		now = now.Add(sec)
		r.Sample(now, 20*ms)
	}
	if got := r.Min(now); got != 20*ms {
		t.Errorf("minimum %v after 20 s at 20 ms", got)
	}
	r.Sample(now, 5*ms)
	if got := r.Min(now.Add(4 * sec)); got != 5*ms {
		t.Errorf("minimum %v, want 5ms", got)
	}
	if got := r.Min(now.Add(11 * sec)); got != 0 {
		t.Errorf("minimum %v after 11 s without sample, want none", got)
	}
	var alone RTT
	alone.Sample(now, 5*ms)
	if before, after := alone.Min(now.Add(10*sec)), alone.Min(now.Add(10*sec+1)); before != 5*ms || after != 0 {
		t.Errorf("minimum %v after 10 s and %v then, want 5ms and none", before, after)
	}
	r.Faster(ms)
	for range 2 {
		if got := r.Min(now); got != ms {
			t.Errorf("minimum %v, want 1ms", got)
		}
		now = now.Add(6 * sec)
		r.Sample(now, 20*ms)
	}
}

// The latest round trip counts before it is smoothed (RFC 9002 section 6.1.2).
func TestRTTOverdue(t *testing.T) {
	var r RTT
	r.Sample(0, 16*ms)
	r.Sample(0, 80*ms)
	if got := r.overdue(); got != 90*ms {
		t.Errorf("overdue after %v, want 90ms", got)
	}
	r.Sample(0, 8*ms)
	if got := r.overdue(); got != r.Smoothed()+r.Smoothed()/8 {
		t.Errorf("overdue after %v with a round trip of %v", got, r.Smoothed())
	}
}

// A minimum counts for two windows of five seconds, to the end of each.
func TestRTTMinWindows(t *testing.T) {
	var r RTT
	for _, tt := range []struct {
		at              Instant
		sample, minimum time.Duration
	}{
		{0, 5 * ms, 5 * ms},
		{Instant(6 * sec), 20 * ms, 5 * ms},
		{Instant(7 * sec), 8 * ms, 5 * ms},
		{Instant(11 * sec), 20 * ms, 5 * ms},
		{Instant(11*sec + 1), 20 * ms, 8 * ms},
		{Instant(17 * sec), 30 * ms, 20 * ms},
	} {
		r.Sample(tt.at, tt.sample)
		if got := r.Min(tt.at); got != tt.minimum {
			t.Errorf("at %v: minimum %v, want %v", time.Duration(tt.at), got, tt.minimum)
		}
	}
}

// What a range measured is told once: neither a range without ids nor one that is not
// believed repeats it, and a frame that was acknowledged before measures nothing.
func TestMeasured(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		want := func(d time.Duration) {
			t.Helper()
			if got, ok := s.s.Measured(); got != d || ok != (d > 0) {
				t.Errorf("measured %v, %v; want %v", got, ok, d)
			}
		}
		apply := func(start frame.Seq, n uint8) { s.s.AppendAcked(nil, s.now, Range{start, n}) }
		want(0)
		s.send(1)
		s.advance(3 * ms)
		apply(s.id(1), 1)
		want(3 * ms)
		for _, again := range []struct {
			name string
			Range
		}{{"no ids", Range{s.id(1), 0}}, {"ids that were not sent", Range{s.id(1), 99}}, {"an id that is known", Range{s.id(1), 1}}} {
			q := s.s.Track(s.now, 1)
			s.advance(3 * ms)
			apply(q, 1)
			want(3 * ms)
			s.s.AppendAcked(nil, s.now, again.Range)
			if d, ok := s.s.Measured(); ok {
				t.Errorf("%s: measured %v again", again.name, d)
			}
		}
	})
}

// TestAssumedRTT checks that a round trip that was assumed counts until one is measured, and no longer, and that none is assumed where one was.
func TestAssumedRTT(t *testing.T) {
	var r RTT
	if r.Assume(300 * time.Millisecond); r.Smoothed() != 300*time.Millisecond || r.Min(0) != 0 || r.timeout(time.Millisecond, 0) != 900*time.Millisecond {
		t.Errorf("%v, at least %v", r.Smoothed(), r.Min(0))
	}
	r.Sample(0, time.Millisecond)
	r.Assume(time.Second)
	var measured RTT
	measured.Sample(0, time.Millisecond)
	if r != measured {
		t.Errorf("%+v, want %+v", r, measured)
	}
}
