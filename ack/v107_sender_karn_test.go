package ack

import (
	"slices"
	"testing"
	"time"
)

// Karn's rule holds as long as the round trip was measured lately, whenever the
// connection began.
func TestSenderKarnMuchLater(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.stall(5 * sec)
		s.measure(10 * ms)
		s.send(1)
		s.advanceToTimer()
		s.wantProbed(2)
		s.resend(2)
		s.advance(12 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		s.wantRTT(10 * ms)
	})
}

// The timeout that was doubled for a frame stays so when a copy of it is acknowledged, until one that was sent
// once is (Karn's algorithm).
func TestSenderBackoffEndsWithFirstTry(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(1)
		s.blackout(3 * sec)
		s.advanceToTimer()
		s.wantProbed(2)
		s.resend(2)
		s.send(1)
		s.stall(31 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		s.wantDeadline(64 * ms)
		s.stall(ms)
		s.ack(3, 3)
		s.wantAcked(3)
		if got := s.s.doubled; got != 0 {
			t.Errorf("the timeout is doubled %d times after a frame that was sent once", got)
		}
	})
}

// Over a way longer than the first timeout the timeout stays long until a frame is
// acknowledged that was sent once (RFC 6298 section 5.7), however young the connection is:
// else every frame would be sent twice, and none measure the way.
func TestSenderFirstWayIsLong(t *testing.T) {
	for _, cumulative := range []bool{false, true} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			cfg.Cumulative, cfg.FreshAlone = cumulative, cumulative
			s := newSenderTest(t, cfg)
			const way = 70 * ms
			s.send(1)
			s.advance(firstTimeout)
			s.wantProbed(1)
			s.resend(1)
			s.advance(way - firstTimeout)
			s.ack(1, 1)
			s.wantAcked(1)
			s.send(1)
			s.advance(way) // in which it is not sent again
			s.ack(2, 2)
			s.wantAcked(2)
			s.wantRTT(way)
			if got := s.s.atMost; got != 0 {
				t.Errorf("the timeout is longer than %v after a frame that was sent once", got)
			}
		})
	}
}

// What is faster than half of the path is not believed where the ids wrap within a
// second.
func TestSenderTooFastBounds(t *testing.T) {
	for _, tt := range []struct {
		quarter, age time.Duration
		believed     bool
	}{
		{wrapsFast - 1, 10*ms - 1, false}, {wrapsFast, 10*ms - 1, true}, {wrapsFast - 1, 10 * ms, true},
	} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.measure(20 * ms)
			s.s.quartered = tt.quarter
			s.send(1)
			s.advance(tt.age)
			s.ack(2, 2)
			if tt.believed {
				s.wantAcked(2)
			} else {
				s.wantAcked()
			}
		})
	}
}

// What was settled long ago was not settled now.
func TestSenderSettleAgain(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(2)
		for i, want := range []bool{true, false} {
			if got := s.s.Settle(s.now, s.id(1)); got != want {
				t.Errorf("time %d: %v, want %v", i+1, got, want)
			}
		}
		s.send(2)
		for i, want := range []bool{true, false} {
			if got := s.s.Settle(s.now, s.id(3)); got != want {
				t.Errorf("time %d, with an older one in flight: %v, want %v", i+1, got, want)
			}
		}
		for _, place := range []int{-14, 5, 18} { // of which two share the slot of frame 2
			if s.s.Settle(s.now, s.id(place)) {
				t.Errorf("the id at %d, which was not used, was settled", place)
			}
		}
		if !slices.Equal(s.ctl.rtts, []time.Duration{-1, -1}) {
			t.Errorf("the controller heard of round trips %v, want none (-1)", s.ctl.rtts)
		}
	})
}

// A peer that waits for one frame is sent more with every timeout, up to half of the
// default window.
func TestSenderCumulativeTimeoutBound(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Cumulative, cfg.FreshAlone = true, true
		s := newSenderTest(t, cfg)
		s.send(1000)
		for k := range 10 {
			s.advanceToTimer()
			if got, want := len(s.ctl.probed), min(2<<k, 512); got != want {
				t.Fatalf("%d frames at timeout %d, want %d", got, k+1, want)
			}
			s.ctl.probed = nil
			s.resendAll()
		}
	})
}

// A copy is no sample and does not end the back-off (RFC 6298 section 5.7), however long there
// was no other: the round trip that it seems to take depends on the timeout, and that on it.
func TestSenderCopyIsNoSample(t *testing.T) {
	for _, silent := range []time.Duration{0, 5 * sec} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.measure(10 * ms)
			s.stall(silent)
			s.send(1)
			s.advanceToTimer()
			s.wantProbed(2)
			s.resend(2)
			s.stall(12 * ms)
			s.ack(2, 2)
			s.wantAcked(2)
			s.wantRTT(10 * ms)
		})
	}
}

// No more pass a full wire than a timeout made probes (RFC 9002 section 7.5).
func TestSenderProbesAreCounted(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(12) // 2 to 13
		s.advance(10 * ms)
		s.ack(5, 7)
		s.wantAcked(5, 6, 7)
		s.wantLost(2, 3, 4)
		s.ctl.window = 1
		s.advanceToTimer()
		s.wantProbed(8, 13)
		s.want("sent again", s.resendAll(), []int{2, 3})
		if n := s.s.Lost(); n != 3 {
			t.Errorf("%d wait to be sent again, want 3", n)
		}
	})
}

// A copy that is acknowledged sooner than a round trip takes is no sample, however
// welcome one is: the first one may be meant.
func TestSenderFastCopyIsNoSample(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(1)
		s.blackout(2 * sec)
		s.advanceToTimer()
		s.wantProbed(2)
		s.resend(2)
		before := *s.s.RTT()
		s.stall(10 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		if got := *s.s.RTT(); got != before {
			t.Errorf("estimate %+v, want it as before: %+v", got, before)
		}
	})
}

// A copy that is acknowledged sooner than half a round trip takes shows that the first one
// had only been slow: reordering gets more room.
func TestSenderSlowCopyBounds(t *testing.T) {
	for age, want := range map[time.Duration]uint32{5*ms - 1: 2 * reorderThreshold, 5 * ms: reorderThreshold} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.measure(10 * ms) // 1
			s.send(2)
			s.advanceToTimer()
			s.wantProbed(2, 3)
			s.send(9) // 4 to 12
			s.resend(2, 3)
			s.advance(age)
			s.batch(3)
			s.wantAcked(3)
			s.wantLost()
			if got := s.s.reorder; got != want {
				t.Errorf("after %v: threshold %d, want %d", age, got, want)
			}
		})
	}
}

// A peer of whom nothing is expected is not given up.
func TestSenderIdleIsNotDead(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		for range 10 {
			s.stall(4 * sec)
			s.expire()
		}
		s.wantIdle()
	})
}

// What was in flight in one life is not in the next one, whatever the ids are used
// for.
func TestSenderNextLifeStartsEmpty(t *testing.T) {
	tt := newTableTest(t, 1)
	for range 16 {
		tt.send()
	}
	cfg := tt.s.cfg
	cfg.SlotTable = 8
	tt.s.Init(tt.now, cfg, tt.s.ctl)
	q := tt.send()
	tt.s.lose(tt.now, q, false)
	tt.s.Resend(tt.now, q)
	if _, ok := tt.s.Alone(tt.now); !ok {
		t.Fatal("no id")
	}
	for tt.s.Next() < 17 {
		tt.send() // id 9 is left out: its place waits for copies of q
	}
	checkSender(t, &tt.s)
	if n := tt.s.InFlight(); n != 14 {
		t.Errorf("%d in flight, want 14", n)
	}
	tt.s.Settle(tt.now, q)
	if got := tt.s.Oldest(); got != 3 {
		t.Errorf("oldest %d, want 3", got)
	}
}

// The controller acts at the end of a batch, and after a timeout.
func TestSenderTellsEndOfBatch(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(1)
		s.advanceToTimer()
		s.wantProbed(1)
		if s.ctl.ends != 1 {
			t.Errorf("%d ends after a timeout", s.ctl.ends)
		}
		s.batch(1)
		s.wantAcked(1)
		if s.ctl.ends != 2 {
			t.Errorf("%d ends after a timeout and a batch", s.ctl.ends)
		}
	})
}

// Who read the clock a moment earlier and got the lock later sends again what seems to have left
// after that. That is no long round trip.
func TestSenderResendsBeforeItWasSent(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		place := s.loseOne(false)
		s.s.slot(s.id(place)).sentAt = s.now.Add(5 * time.Microsecond)
		s.resend(place)
		s.stall(40 * ms)
		s.ack(place, place)
		s.wantAcked(place)
		if s.s.atMost > sec {
			t.Errorf("a round trip takes at most %v", s.s.atMost)
		}
	})
}
