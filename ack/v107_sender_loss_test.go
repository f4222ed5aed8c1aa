package ack

import (
	"slices"
	"testing"
	"time"
)

// A lost frame is sent again under its id (DGRDMA-026) until it is acknowledged
// (DGRDMA-025).
func TestSenderRetransmission(t *testing.T) {
	lossTests(t, func(t *testing.T, cfg SenderConfig, timeout bool) {
		s := newSenderTest(t, cfg)
		s.loseOne(timeout)
		s.resend(1)
		s.advance(10 * ms)
		s.ack(1, 1)
		s.wantAcked(1)
		s.wantIdle()
		s.send(1)
		s.ack(5, 5)
		s.wantAcked(5)
	})
}

// The first copy may have been slow: its acknowledgement counts while the frame
// waits to be sent again.
func TestSenderAckOfLost(t *testing.T) {
	lossTests(t, func(t *testing.T, cfg SenderConfig, timeout bool) {
		s := newSenderTest(t, cfg)
		s.loseOne(timeout)
		s.ack(1, 1)
		s.wantAcked(1)
		s.resend()
		s.wantIdle()
	})
}

// A retransmission is lost as well, for the other reason or the same.
func TestSenderRetransmissionLost(t *testing.T) {
	for _, again := range []bool{false, true} {
		lossTests(t, func(t *testing.T, cfg SenderConfig, timeout bool) {
			s := newSenderTest(t, cfg)
			s.loseOne(timeout)
			s.resend(1)
			if again {
				s.advanceToTimer()
				s.wantProbed(1)
			} else {
				s.send(3)
				s.advance(10 * ms)
				s.ack(5, 7)
				s.wantAcked(5, 6, 7)
				s.wantLost(1)
			}
			s.resend(1)
			s.advance(10 * ms)
			s.ack(1, 1)
			s.wantAcked(1)
			s.wantIdle()
		})
	}
}

// A frame is lost when three later ones were acknowledged (RFC 9002 section
// 6.1.1). Ids of acknowledgement-only frames are none of them.
func TestSenderPacketThreshold(t *testing.T) {
	for _, tt := range []struct {
		name string
		send string // f frame, a alone
		acks []int
		lost []int
	}{
		{"none", "ffff", []int{1, 2, 3}, nil},
		{"two_later", "ffff", []int{2, 3}, nil},
		{"third", "ffff", []int{4}, []int{1}},
		{"three_later", "ffff", []int{2, 3, 4}, []int{1}},
		{"several", "ffffffff", []int{7}, []int{1, 2, 3, 4}},
		{"holes", "ffffffff", []int{2, 4, 7}, []int{1, 3}},
		{"alone_between", "faaaaff", []int{6, 7}, nil},
		{"alone_between_three", "faaaafff", []int{6, 7, 8}, []int{1}},
		{"last", "ffff", []int{1, 2}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				s := newSenderTest(t, cfg)
				for _, kind := range tt.send {
					if kind == 'f' {
						s.send(1)
					} else {
						s.alone(1)
					}
				}
				s.advance(5 * ms)
				s.batch(tt.acks...)
				s.wantAcked(tt.acks...)
				s.wantLost(tt.lost...)
			})
		})
	}
}

// What counts is the order of sending, not of ids: a retransmission has an old
// id and is young. One loss in a large window is one retransmission, however
// many acknowledgements pass the hole.
func TestSenderOneLossOneRetransmission(t *testing.T) {
	lossTests(t, func(t *testing.T, cfg SenderConfig, timeout bool) {
		s := newSenderTest(t, cfg)
		s.send(1024)
		s.advance(10 * ms)
		times := 0
		lost := func() {
			times += len(s.resendAll())
			s.ctl.lost, s.ctl.probed = nil, nil
		}
		if timeout {
			s.advanceToTimer()
			s.wantProbed(1, 1024)
			s.ack(1024, 1024)
			s.wantAcked(1024)
			lost()
		}
		for next := 2; next <= 1024; next += 16 {
			s.ack(next, min(next+15, 1024))
			lost()
			n := len(s.acked)
			s.acked = nil
			s.send(n)
		}
		if times != 1 {
			t.Fatalf("%d retransmissions, want 1", times)
		}
		s.advance(10 * ms)
		s.ack(1, s.last)
		s.acked = nil
		s.wantIdle()
	})
}

// With fewer than three later frames, time tells (RFC 9002 section 6.1.2).
func TestSenderTimeThreshold(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(8 * ms)
		s.send(2)
		s.advance(8 * ms)
		s.ack(3, 3)
		s.wantAcked(3)
		s.wantDeadline(ms) // 9/8 of the round trip
		s.advance(ms - 1)
		s.advance(1)
		s.wantLost(2)
		s.resend(2)
		s.advance(8 * ms)
		s.ack(2, 2)
		s.wantAcked(2)
		s.wantIdle()
	})
}

// On a path without delay the threshold is a millisecond, so that a receiver
// that is not scheduled at once costs nothing.
func TestSenderTimeThresholdIsBounded(t *testing.T) {
	s := newSenderTest(t, testConfig())
	s.measure(10 * time.Microsecond)
	s.send(2)
	s.advance(10 * time.Microsecond)
	s.ack(3, 3)
	s.wantAcked(3)
	s.wantDeadline(ms - 10*time.Microsecond)
	s.ack(2, 2)
	s.wantAcked(2)
	s.wantIdle()
}

// A timeout sends the oldest and the newest frame again; the next one takes twice as long
// (RFC 6298 section 5.5), up to a bound.
func TestSenderBackoff(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(4)
		s.wantDeadline(firstTimeout)
		s.advance(firstTimeout - 1)
		s.advance(1)
		s.wantProbed(1, 4)
		s.resend(1, 4)
		s.wantDeadline(2 * firstTimeout)
		s.advance(2 * firstTimeout)
		s.wantProbed(1, 4)
		s.resend(1, 4)
		s.wantDeadline(4 * firstTimeout)
		s.ack(1, 4)
		s.wantAcked(1, 2, 3, 4)
		s.wantIdle()
		s.send(1) // until a round trip is measured (section 5.7)
		s.wantDeadline(2 * firstTimeout)
		s.ack(5, 5)
		s.wantAcked(5)
		s.wantIdle()
		s.send(1)
		s.wantDeadline(cfg.MinRTO)

		s = newSenderTest(t, cfg)
		s.send(1)
		tries := s.blackout(5 * sec)
		want := []time.Duration{40 * ms, 120 * ms, 280 * ms, 600 * ms, 1240 * ms, 2240 * ms, 3240 * ms, 4240 * ms}
		if !slices.Equal(tries, want) {
			t.Fatalf("tries at %v, want %v", tries, want)
		}
		if n := s.s.Timeouts(); n != len(want) {
			t.Fatalf("%d timeouts, want %d", n, len(want))
		}
	})
}

// The timeout follows the round trip and leaves room for the peer's delay
// (DGRDMA-035).
func TestSenderTimeout(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(20 * ms)
		s.send(1)
		s.wantDeadline(20*ms + 4*10*ms + 2*ms)
		s.ack(2, 2)
		s.wantAcked(2)
		for range 50 {
			s.measure(ms)
		}
		s.send(1)
		s.wantDeadline(cfg.MinRTO)
	})
}

func TestSenderGiveUp(t *testing.T) {
	t.Run("blackout_9s", func(t *testing.T) {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.send(100)
			s.blackout(9 * sec)
			s.ack(1, 100)
			s.wantAckedRun(1, 100)
			s.wantIdle()
		})
	})
	t.Run("blackout_10s", func(t *testing.T) {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.send(100)
			s.blackout(10*sec - 1)
			s.blackout(1)
			s.wantDead()
		})
	})
	t.Run("after_idling", func(t *testing.T) {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.measure(ms)
			s.advance(time.Hour)
			s.send(1)
			s.blackout(9 * sec)
			s.ack(2, 2)
			s.wantAcked(2)
			s.advance(time.Hour)
			s.send(1)
			s.blackout(11 * sec)
			s.wantDead()
		})
	})
	// Any acknowledgement of the oldest frame counts as progress.
	t.Run("progress", func(t *testing.T) {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.send(20)
			for i := range 10 {
				s.blackout(6 * sec)
				s.ack(i+1, i+1)
				s.wantAcked(i + 1)
				s.ctl.lost = nil
			}
			s.blackout(10 * sec)
			s.wantDead()
		})
	})
	// So does one of another frame, as copies of the oldest may have been lost, until it was lost for twice as long.
	t.Run("others", func(t *testing.T) {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.send(20)
			s.blackout(9 * sec)
			s.ack(7, 7)
			s.wantAcked(7)
			s.ctl.lost = nil
			s.blackout(10*sec - 1)
			s.blackout(1)
			s.wantDead()
			s = newSenderTest(t, cfg)
			s.send(20)
			for i := range 3 {
				s.blackout(6 * sec)
				s.ack(7+i, 7+i)
				s.wantAcked(7 + i)
				s.ctl.lost = nil
			}
			s.blackout(2*sec - 1)
			s.blackout(1)
			s.wantDead()
		})
	})
	// Nobody sends lost frames again, as pacing or a session that is not yet
	// open may have it: that ends as well.
	t.Run("all_lost", func(t *testing.T) {
		lossTests(t, func(t *testing.T, cfg SenderConfig, timeout bool) {
			s := newSenderTest(t, cfg)
			s.loseOne(timeout)
			s.advance(11 * sec)
			s.wantDead()
		})
	})
}

// A frame that the peer refuses for ever is not hidden by others, however fast
// they come.
func TestSenderGiveUpRefused(t *testing.T) {
	for _, every := range []time.Duration{800 * time.Microsecond, ms, 3 * ms, 50 * ms} {
		t.Run(every.String(), func(t *testing.T) {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				s := newSenderTest(t, cfg)
				s.measure(100 * time.Microsecond)
				s.send(1)
				start := s.now
				for n := 3; !s.dead; n++ {
					if s.now.Sub(start) > 21*sec {
						t.Fatal("the peer lives after 21 s, want it dead")
					}
					s.last++
					s.s.Track(s.now, s.last)
					s.step(100 * time.Microsecond)
					s.apply(Range{s.id(n), 1}, true)
					s.s.EndBatch(s.now)
					s.acked = nil
					s.step(every - 100*time.Microsecond)
				}
				if d := s.now.Sub(start); d < 19*sec {
					t.Fatalf("dead after %v, want 20 s", d)
				}
			})
		})
	}
}

// step lets time pass as advance does, without a word, and sends what is lost.
func (s *senderTest) step(d time.Duration) {
	s.resendAll()
	for end := s.now.Add(d); ; {
		at, armed := s.s.Deadline()
		if !armed || at > end || s.dead {
			s.now = end
			break
		}
		s.now = max(s.now, at)
		s.expire()
		s.resendAll()
	}
	s.ctl.lost, s.ctl.probed = nil, nil
}

// A process that was stopped knows nothing about its peer: what the peer sent
// meanwhile is still to be read.
func TestSenderStoodStill(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(4)
		s.stall(11 * sec)
		s.expire()
		s.wantProbed(1, 4)
		s.resend(1, 4)
		s.ack(1, 4)
		s.wantAcked(1, 2, 3, 4)
		s.wantIdle()
	})
	t.Run("batch_first", func(t *testing.T) {
		s := newSenderTest(t, testConfig())
		s.send(4)
		s.stall(11 * sec)
		s.ack(3, 3)
		s.wantAcked(3)
		s.expire() // it was heard
		s.advance(sec)
		s.wantProbed(1, 4)
		s.resend(1, 4)
		s.ack(1, 4)
		s.wantAcked(1, 2, 4)
		s.wantIdle()
	})
	t.Run("peer_gone", func(t *testing.T) {
		s := newSenderTest(t, testConfig())
		s.send(4)
		s.stall(11 * sec)
		s.blackout(4 * sec)
		s.blackout(sec)
		s.wantDead()
	})
}

// Karn's rule: what was sent more than once measures nothing.
func TestSenderKarn(t *testing.T) {
	lossTests(t, func(t *testing.T, cfg SenderConfig, timeout bool) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		place := s.loseOne(timeout)
		smoothed := s.s.RTT().Smoothed()
		s.resend(place)
		s.ctl.rtts = nil
		s.advance(12 * ms)
		s.ack(place, place)
		s.wantAcked(place)
		s.wantRTT(smoothed)
		if !slices.Equal(s.ctl.rtts, []time.Duration{-1}) {
			t.Fatalf("the controller heard of round trips %v, want none (-1)", s.ctl.rtts)
		}
		s.wantIdle()
	})
}

// Karn's rule alone would never measure a path that became slower than the
// timeout.
func TestSenderSlowerPath(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		for round := 1; ; round++ {
			s.send(1)
			tries := s.blackout(200 * ms)
			s.ack(s.last, s.last)
			s.wantAcked(s.last)
			if len(tries) == 0 {
				break
			}
			if round == 30 {
				t.Fatalf("after %d round trips of 200 ms their estimate is %v, and all is sent twice", round, s.s.RTT().Smoothed())
			}
		}
	})
}

// Only the latest frame of a range is a measure, and only if it is later than
// all before.
func TestSenderSamples(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.send(1)
		s.advance(30 * ms)
		s.send(1)
		s.advance(8 * ms)
		s.ack(1, 2)
		s.wantAcked(1, 2)
		s.wantRTT(8 * ms)
		if want := []time.Duration{38 * ms, 8 * ms}; !slices.Equal(s.ctl.rtts, want) {
			t.Fatalf("the controller heard of round trips %v, want %v", s.ctl.rtts, want)
		}
		s.send(3)
		s.advance(8 * ms)
		s.ack(5, 5)
		s.wantAcked(5)
		s.advance(ms / 2)
		s.ack(3, 4) // overtaken by its own acknowledgement
		s.wantAcked(3, 4)
		s.wantRTT(8 * ms)
	})
}

// An acknowledgement for a frame already taken for lost shows that the network
// reorders more than assumed; a bonded link does by design (quirk F19).
func TestSenderReordering(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		for threshold := reorderThreshold; threshold < maxReorder; threshold *= 2 {
			base := s.last
			s.send(threshold + 2)
			s.advance(10 * ms)
			s.ack(base+3, base+2+threshold-1) // threshold-1 after frame 2
			s.wantAckedRun(base+3, base+2+threshold-1)
			if threshold > 2 {
				s.wantLost(base + 1)
			}
			s.ack(base+1, base+1)
			s.wantAcked(base + 1)
			s.ack(base+2, s.last)
			s.acked = nil
			s.wantIdle()
		}
		s.send(maxReorder + 1)
		s.advance(10 * ms)
		base := s.last - maxReorder
		s.ack(base+1, base+maxReorder-1)
		s.wantAckedRun(base+1, base+maxReorder-1)
		s.ack(base+maxReorder, base+maxReorder)
		s.wantAcked(base + maxReorder)
		s.wantLost(base)
		s.ack(base, base)
		s.wantAcked(base)
		s.wantIdle()
	})
}

// An acknowledgement that comes too soon for the retransmission is one for the
// first copy.
func TestSenderSpurious(t *testing.T) {
	lossTests(t, func(t *testing.T, cfg SenderConfig, timeout bool) {
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		place := s.loseOne(timeout)
		s.resend(place)
		s.advance(ms)
		s.ack(place, place)
		s.wantAcked(place)
		base := s.last
		s.send(8)
		s.advance(10 * ms)
		s.ack(base+2, base+6)
		s.wantAckedRun(base+2, base+6)
		s.ack(base+7, base+7)
		s.wantAcked(base + 7)
		s.wantLost(base + 1)
	})
}

// The peer only stood still for longer than the timeout. When it goes on, its
// acknowledgements of what was sent again come with those of what was not:
// nothing that is still to be acknowledged is lost.
func TestSenderPeerStoodStill(t *testing.T) {
	for _, rtt := range []time.Duration{ms, 10 * ms} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.measure(rtt)
			base := s.last
			s.send(20)
			s.advanceToTimer()
			s.wantProbed(base+1, base+20)
			s.resend(base+1, base+20)
			s.advance(2 * rtt)
			s.ack(base+1, base+8)
			s.wantAckedRun(base+1, base+8)
			s.advance(10 * time.Microsecond)
			s.ack(base+9, base+20)
			s.wantAckedRun(base+9, base+20)
			s.wantIdle()
		})
	}
}

// wrapFast makes the ids wrap quickly, with that round trip.
func (s *senderTest) wrapFast(rtt time.Duration) {
	s.t.Helper()
	for range 5 {
		s.send(8192)
		s.advance(rtt)
		s.ack(s.last-8191, s.last)
		s.acked = nil
	}
	s.wantIdle()
}

// Where ids wrap within a fraction of a second, an acknowledgement that is
// faster than the path was meant for the same id a wrap before. If it is true,
// the path has become faster, and that must not stop anything.
func TestSenderTooFast(t *testing.T) {
	fast := func(t *testing.T, cfg SenderConfig) *senderTest {
		cfg.Window = 8192
		s := newSenderTest(t, cfg)
		s.wrapFast(20 * ms)
		return s
	}
	t.Run("held_back", func(t *testing.T) {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := fast(t, cfg)
			s.send(10)
			s.advance(5 * ms)
			s.ack(s.last-9, s.last)
			s.wantAcked()
			s.advance(15 * ms)
			s.ack(s.last-9, s.last)
			s.wantAckedRun(s.last-9, s.last)
		})
	})
	t.Run("slow_ids", func(t *testing.T) {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			s := newSenderTest(t, cfg)
			s.measure(20 * ms)
			s.send(10)
			s.advance(ms)
			s.ack(2, 11)
			s.wantAckedRun(2, 11)
		})
	})
	t.Run("idle_then_burst", func(t *testing.T) {
		for _, idle := range []time.Duration{0, ms, sec, 4 * sec, 6 * sec, 20 * sec} {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				s := fast(t, cfg)
				s.advance(idle)
				for round := range 6 {
					base := s.last
					s.send(8192)
					for try := 0; s.s.InFlight() > 0; try++ {
						if try > 2 {
							t.Fatalf("idle %v: %d of 8192 frames in flight after %d tries of round %d", idle, s.s.InFlight(), try, round)
						}
						s.step(100 * time.Microsecond)
						s.ack(base+1, s.last)
						s.acked, s.ctl.lost, s.ctl.probed = nil, nil, nil
					}
				}
			})
		}
	})
}

// Quirk F2: an FPGA moves on only with the frame it waits for, which is the
// oldest, or a later one if its acknowledgement was lost: a timeout looks
// further each time.
func TestSenderCumulativeTimeout(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span, cfg.Cumulative, cfg.FreshAlone = 32, 128, true, true
		s := newSenderTest(t, cfg)
		s.send(16)
		s.advanceToTimer()
		s.wantProbed(1, 2)
		s.resend(1, 2)
		s.advanceToTimer()
		s.wantProbed(1, 2, 3, 4)
		s.resend(1, 2, 3, 4)
		s.advanceToTimer()
		s.wantProbed(1, 2, 3, 4, 5, 6, 7, 8)
		s.resend(1, 2, 3, 4, 5, 6, 7, 8)
		s.advance(10 * ms)
		s.apply(Range{s.id(17), 0}, true)
		s.wantAckedRun(1, 16)
		s.wantIdle()
		s.send(3)
		s.advanceToTimer()
		s.wantProbed(17, 18)
	})
}

// What such a peer acknowledges after a retransmission may have waited there
// for it, and measures nothing.
func TestSenderCumulativeSamples(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span, cfg.Cumulative, cfg.FreshAlone = 32, 128, true, true
		s := newSenderTest(t, cfg)
		s.measure(10 * ms)
		s.send(5)
		s.advanceToTimer()
		s.wantProbed(2, 3)
		s.resend(2, 3)
		s.ctl.rtts = nil
		s.advance(10 * ms)
		s.apply(Range{s.id(7), 0}, true)
		s.wantAcked(2, 3, 4, 5, 6)
		s.wantRTT(10 * ms)
		for _, rtt := range s.ctl.rtts {
			if rtt >= 0 {
				t.Errorf("the controller heard of a round trip of %v, want none", rtt)
			}
		}
		s.measure(18 * ms)
		s.wantRTT(11 * ms)
	})
}
