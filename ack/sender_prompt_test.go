package ack

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// A peer that holds nothing back of two frames is asked again soon: what acknowledged a
// whole window was lost, and nothing else would leave (RFC 8985 section 7.2). Of one frame
// it may hold the acknowledgement back.
func TestSenderAsksAgainSoon(t *testing.T) {
	const way = 100 * time.Microsecond // smoothed, and half of it as variance
	for _, c := range []struct {
		every, frames int
		want          time.Duration
	}{
		{0, 2, 10 * ms}, // MinRTO
		{1, 1, way + Granularity},
		{2, 1, 10 * ms},
		{2, 2, way + Granularity},
		{3, 2, 10 * ms},
		{3, 40, way + Granularity},
	} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			cfg.AckEvery = c.every
			s := newSenderTest(t, cfg)
			s.measure(way)
			s.send(c.frames) // from 2 on
			s.wantDeadline(c.want)
			s.advanceToTimer()
			want := []int{2, 1 + c.frames}[:min(c.frames, 2)]
			s.wantProbed(want...)
			s.resend(want...)
			s.wantDeadline(2 * c.want)
			s.advance(way)
			s.ack(2, 1+c.frames)
			s.wantAckedRun(2, 1+c.frames)
			s.wantIdle()
		})
	}
}

// A path whose round trips differ gets more time, and one that was never measured all.
func TestSenderAsksNotTooSoon(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.AckEvery = 2
		s := newSenderTest(t, cfg)
		s.send(2)
		s.wantDeadline(firstTimeout)
		s.advance(ms)
		s.ack(1, 2)
		s.wantAcked(1, 2)
		s.send(2)
		s.wantDeadline(3 * ms) // a variance of half a millisecond
	})
}

// What a late frame taught about reordering is forgotten half by half, when frames are
// really lost again and again (RFC 8985 section 6.2): with the largest threshold on a short
// path every loss would be noticed a millisecond late.
func TestSenderForgetsReordering(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.s.reorder = maxReorder
		lose := func() {
			s.s.patience.lost = 0 // none is left alone
			first := s.last + 1
			s.send(1 + int(s.s.reorder))
			s.advance(10 * ms)
			s.ack(first+1, s.last)
			s.acked = nil
			s.wantLost(first)
			s.resend(first)
			s.advance(10 * ms)
			s.ack(first, first)
			s.wantAcked(first)
		}
		for want := uint32(maxReorder); want > reorderThreshold; {
			for range reorderKeeps - 1 {
				lose()
			}
			if s.s.reorder != want {
				t.Fatalf("threshold %d after %d losses, want %d", s.s.reorder, reorderKeeps-1, want)
			}
			lose()
			if want = max(want/2, reorderThreshold); s.s.reorder != want {
				t.Fatalf("threshold %d after %d losses, want %d", s.s.reorder, reorderKeeps, want)
			}
		}

		// One that is late begins again.
		for range reorderKeeps - 1 {
			lose()
		}
		s.send(4)
		first := s.last - 3
		s.advance(10 * ms)
		s.ack(first+1, s.last)
		s.acked = nil
		s.wantLost(first)
		s.ack(first, first) // it had only been slow
		s.wantAcked(first)
		for range reorderKeeps - 1 {
			lose()
		}
		if s.s.reorder != 2*reorderThreshold {
			t.Errorf("threshold %d, want %d", s.s.reorder, 2*reorderThreshold)
		}
	})
}

// A copy that left a moment ago is not lost yet, though others that wait longer are, and
// though it is the oldest.
func TestSenderSparesWhatLeftJustNow(t *testing.T) {
	const way = 100 * time.Microsecond
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.AckEvery = 2
		s := newSenderTest(t, cfg)
		s.measure(way)
		s.send(10) // 2 to 11
		s.advance(way)
		s.ack(5, 7)
		s.wantAcked(5, 6, 7)
		s.wantLost(2, 3, 4)
		s.advance(Granularity)
		s.resend(2, 3, 4)
		s.advanceToTimer()
		s.wantProbed(8) // the newest is one of those
		s.resend(8)
		s.advanceToTimer()
		s.wantProbed(2, 8)
	})
}

// Of one frame the peer holds the acknowledgement back, as it may, until there is a second
// one: that has just left, so the first one is not late.
func TestSenderSecondFrameIsOnItsWay(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.AckEvery = 2
		s := newSenderTest(t, cfg)
		s.measure(100 * time.Microsecond)
		s.send(1)
		s.advance(ms)
		s.send(1)
		s.wantDeadline(100*time.Microsecond + Granularity)
		s.send(1)
		s.wantDeadline(100*time.Microsecond + Granularity)
	})
}

// A path becomes ten times as long as it was, or 49 times, and nothing is lost: that is learnt
// by the first frames that are not sent again (RFC 6298 section 5.7).
func TestSenderLearnsLongerPath(t *testing.T) {
	for _, longer := range []time.Duration{1020 * time.Microsecond, 4900 * time.Microsecond} {
		for _, apart := range []time.Duration{0, 12 * time.Microsecond} { // acknowledged together, or one by one
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				cfg.AckEvery, cfg.MinRTO, cfg.AckDelay = 2, 5*ms, 2*ms
				var s Sender
				now := Instant(time.Hour)
				s.Init(now, cfg, &FixedWindow{})
				again := 0
				round := func(way time.Duration) {
					a, b := s.Track(now, 1400), s.Track(now, 1400)
					back := now.Add(way)
					resend := func() {
						for q, ok := s.NextLost(now); ok; q, ok = s.NextLost(now) {
							s.Resend(now, q)
							again++
						}
					}
					for at, _ := s.Deadline(); at < back; at, _ = s.Deadline() {
						now = at
						s.Expire(now, now)
						resend()
					}
					now = back
					for _, q := range []frame.Seq{a, b} {
						s.AppendAcked(nil, now, Range{q, 1})
						if apart > 0 || q == b {
							s.EndBatch(now)
							resend()
						}
						now = now.Add(apart)
					}
				}
				for range 100 {
					round(100 * time.Microsecond)
				}
				if again > 0 {
					t.Fatalf("%d frames left again on a path that does not change", again)
				}
				for range 200 {
					round(longer)
				}
				if again > 10 {
					t.Errorf("%d of 400 frames left again on a path that has become %v long", again, longer)
				}
			})
		}
	}
}

// That the copy of the oldest frame is acknowledged tells nothing of those behind it: it was the
// first copy, perhaps, and they follow. That the newest one is tells that they were overtaken,
// whichever copy it was.
func TestSenderNewestProbeTells(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(20) // 2 to 21
		s.advanceToTimer()
		s.wantProbed(2, 21)
		s.resend(2, 21)
		s.advance(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		s.wantLost()
		s.ack(3, 4) // they follow
		s.wantAcked(3, 4)
		s.wantLost()
		if s.s.RTT().Smoothed() <= 10*ms {
			t.Error("what was sent once is no sample")
		}
		s.advance(ms)
		s.ack(21, 21)
		s.wantAcked(21)
		s.wantLost(5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	})
}

// oldestAlone sends frames 2 to 10 on a path of 10 ms, of which a timeout sends the oldest and
// the newest again, and only the oldest is acknowledged.
func oldestAlone(t *testing.T, cfg SenderConfig) *senderTest {
	s := newSenderTest(t, cfg)
	s.measure(10 * ms)
	s.send(9) // 2 to 10
	s.advanceToTimer()
	s.wantProbed(2, 10)
	s.resend(2, 10)
	s.advance(10 * ms)
	s.ack(2, 2)
	s.wantAcked(2)
	return s
}

// When nothing that left behind the first copy of the oldest follows until the next timeout, it
// was the second that arrived, and what it overtook is lost, whole: a receiver with room for one
// datagram drops the newest every time.
func TestSenderOldestTellsInTheEnd(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := oldestAlone(t, cfg)
		s.wantLost()
		s.advanceToTimer()
		s.wantLost(3, 4, 5, 6, 7, 8, 9)
		s.wantProbed(10)
		s.resend(3, 4, 5, 6, 7, 8, 9, 10)
		s.advance(10 * ms)
		s.ack(3, 10)
		s.acked = nil
		s.wantIdle()
	})
}

// Nothing is left to probe then, if the oldest left behind all others.
func TestSenderOldestTellsAll(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(3) // 2 to 4
		at, _ := s.s.Deadline()
		s.advance(at.Sub(s.now) - ms)
		s.send(1) // 5
		s.advanceToTimer()
		s.wantProbed(2)
		s.resend(2)
		s.advance(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		s.wantLost()
		s.advanceToTimer()
		s.wantLost(3, 4, 5)
		s.ctl.window = 1
		s.wantNextLost(true) // nothing is on the wire
		s.s.Resend(s.now, s.id(3))
		s.wantNextLost(false)
		s.ack(3, 5)
		s.wantAcked(3, 4, 5)
		s.wantIdle()
	})
}

// What was sent once and came meanwhile was the sign that it was the first.
func TestSenderOldestToldOtherwise(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := oldestAlone(t, cfg)
		s.batch()
		s.ack(3, 3)
		s.wantAcked(3)
		s.wantLost()
		s.advanceToTimer()
		s.wantLost()
		s.wantProbed(4, 10)
	})
}

// A copy that is acknowledged with what left before it tells nothing of the rest, and the path
// is as long as it was: the early timeout stays.
func TestSenderCopyAmongOthers(t *testing.T) {
	for _, order := range [][]int{{2, 6}, {6, 2}} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			cfg.AckEvery = 2
			s := newSenderTest(t, cfg)
			s.measure(100 * time.Microsecond)
			s.send(10) // 2 to 11
			s.advance(100 * time.Microsecond)
			s.ack(3, 5)
			s.wantAcked(3, 4, 5)
			s.wantLost(2)
			s.resend(2)
			s.advance(100 * time.Microsecond)
			s.batch(order...)
			s.wantAcked(order...)
			s.wantLost()
			if at, _ := s.s.Deadline(); at.Sub(s.now) > ms {
				t.Errorf("the next timeout is in %v", at.Sub(s.now))
			}
		})
	}
}
