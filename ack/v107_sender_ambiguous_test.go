package ack

import (
	"testing"
	"time"
)

// Windows of three frames are acknowledged together, and the path becomes longer than the timeout:
// what arrives with copies is no measure, and what follows is. Nothing is lost, so none of it is
// a sign of congestion.
func TestSenderLearnsBehindCopies(t *testing.T) {
	cfg := SenderConfig{First: 1, Window: 1024, Span: MaxHistory - 1, MinRTO: 5 * ms, MaxRTO: sec, AckDelay: 2 * ms, GiveUp: 10 * sec}
	var s Sender
	now := Instant(time.Hour)
	ctl := NewAdaptive(1400)
	s.Init(now, cfg, ctl)
	again := 0
	round := func(way time.Duration) {
		first := s.Next()
		for range 3 {
			s.Track(now, 1400)
		}
		back := now.Add(way)
		for at, _ := s.Deadline(); at < back; at, _ = s.Deadline() {
			now = at
			s.Expire(now, now)
			for q, ok := s.NextLost(now); ok; q, ok = s.NextLost(now) {
				s.Resend(now, q)
				again++
			}
		}
		now = back
		s.AppendAcked(nil, now, Range{first, 3})
		s.EndBatch(now)
	}
	for range 100 {
		round(100 * time.Microsecond)
	}
	for i, most := range []int{24, 0} {
		again = 0
		for range 1000 {
			round(5 * ms)
		}
		if again > most || ctl.Cap() != 0 {
			t.Errorf("5 s number %d: %d of 3000 frames left again; smoothed %v; cap %d frames", i, again, s.RTT().Smoothed(), ctl.Cap()/1400)
		}
	}
}

// The peer holds acknowledgements back for as long as the path is, and acknowledges copies at
// once. Every third window loses its only acknowledgement, and what was sent once is
// acknowledged with the copies: the timeout is no part of the round trip.
func TestSenderLostAckIsNoRoundTrip(t *testing.T) {
	for _, frames := range []int{1, 2, 3, 100} {
		var s Sender
		cfg := SenderConfig{First: 1, Window: 1024, Span: MaxHistory - 1, MinRTO: 5 * ms, MaxRTO: sec, AckDelay: 2 * ms, GiveUp: 10 * sec}
		now := Instant(time.Hour)
		began := now
		s.Init(now, cfg, &FixedWindow{})
		worst := time.Duration(0)
		for round := range 300 {
			first := s.Next()
			for range frames {
				s.Track(now, 1400)
			}
			if back := 4 * ms; round%3 < 2 {
				now = now.Add(back)
			} else { // the acknowledgement is lost
				for again := false; !again; {
					now, _ = s.Deadline()
					s.Expire(now, now)
					for q, ok := s.NextLost(now); ok; q, ok = s.NextLost(now) {
						s.Resend(now, q)
						again = true
					}
				}
				now = now.Add(2 * ms)
			}
			s.AppendAcked(nil, now, Range{first, uint8(frames)})
			s.EndBatch(now)
			worst = max(worst, s.RTT().Smoothed())
		}
		if worst > 8*ms {
			t.Errorf("windows of %d frames: the round trip of 4 ms is taken for %v, 300 windows took %v", frames, worst, now.Sub(began))
		}
	}
}
