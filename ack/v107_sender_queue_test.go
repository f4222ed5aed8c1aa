package ack

import (
	"testing"
	"time"
)

// TestSenderOneRun checks that a peer that names a frame of which a copy left has nothing lost that left between the
// two, until it falls silent, whether it queues its acknowledgements or not (O1).
func TestSenderOneRun(t *testing.T) {
	for _, x := range []struct {
		name           string
		queues, silent bool
	}{{"goes on", false, false}, {"is silent", false, true}, {"queues and goes on", true, false}, {"queues and is silent", true, true}} {
		t.Run(x.name, func(t *testing.T) {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				cfg.OneRun = x.queues
				s := newSenderTest(t, cfg)
				s.measure(10 * ms)
				s.send(10)
				s.advance(10 * ms)
				s.ack(5, 7) // the run before it did not come
				s.wantAcked(5, 6, 7)
				s.wantLost(2, 3, 4)
				s.resend(2, 3, 4)
				s.advance(10 * ms)
				s.ack(2, 2)
				s.wantAcked(2)
				switch {
				case x.silent:
					s.advanceToTimer()
					s.wantLost(8, 9, 10, 11)
					s.wantProbed(3, 4)
				default:
					s.advance(10 * ms)
					s.ack(8, 11)
					s.wantAcked(8, 9, 10, 11)
					s.advance(10 * ms)
					s.ack(3, 4)
					s.wantAcked(3, 4)
					s.wantIdle()
				}
			})
		})
	}
}

// TestSenderOneRunOfCopies checks that such a peer that names nothing but copies is waited for: what was sent
// after them is further back in its queue, and more copies make that longer (O1).
func TestSenderOneRunOfCopies(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.OneRun, cfg.MaxBetween = true, 10*ms
		s := newSenderTest(t, cfg)
		s.measure(ms)
		s.send(1)
		const copies = 5
		for range copies {
			s.advanceToTimer()
			s.wantProbed(2)
			s.resend(2)
		}
		s.ack(2, 2)
		s.wantAcked(2)
		s.send(1)
		for range copies {
			s.advance(9 * ms)
			s.ack(2, 2)
		}
		s.advance(9 * ms)
		s.ack(3, 3)
		s.wantAcked(3)
		s.wantIdle()
	})
}

// TestSenderMaxBetween checks that a frame is sent again as often as such a peer wants while that takes no
// longer than an answer; then no sooner than it can be answered if the peer queues acknowledgements (O1), and as often as
// before if it does not: it would take later copies for another epoch.
func TestSenderMaxBetween(t *testing.T) {
	for _, queues := range []bool{true, false} {
		testMaxBetween(t, queues)
	}
}

func testMaxBetween(t *testing.T, queues bool) {
	for _, x := range []struct{ way, first, then time.Duration }{
		{0, 40 * ms, 40 * ms},               // not known
		{2 * ms, 10 * ms, 40 * ms},          // short
		{100 * ms, 302 * ms, 302 * ms},      // longer than that
		{sec, testConfig().MaxRTO, 1 * sec}, // too long
	} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			cfg.MaxBetween, cfg.OneRun = 40*ms, queues
			s := newSenderTest(t, cfg)
			if x.way > 0 {
				s.send(1)
				s.now = s.now.Add(x.way)
				s.ack(1, 1)
				s.wantAcked(1)
			}
			s.send(1)
			var waits []time.Duration
			for range 8 {
				at, _ := s.s.Deadline()
				waits = append(waits, at.Sub(s.now))
				s.advanceToTimer()
				s.wantProbed(s.last)
				s.resend(s.last)
			}
			first, then := x.first, x.then
			if !queues {
				first, then = min(first, 40*ms), min(then, 40*ms)
			}
			if waits[0] != first || waits[7] != then {
				t.Errorf("a way of %v, queues %v: sent again after %v, want %v and in the end %v", x.way, queues, waits, first, then)
			}
		})
	}
}

// TestSenderStaysDoubled checks that the timeout that was doubled for a frame is the next one's, too, when a copy is acknowledged: by
// twice as much when that was so again, until a frame that was sent once is acknowledged (RFC 6298 section 5.7). It is not where copies have to come soon
// one after the other and the peer does not queue what it acknowledges, nor when frames are missing that left before a copy.
func TestSenderStaysDoubled(t *testing.T) {
	for _, x := range []struct {
		name    string
		between time.Duration
		queues  bool
		frames  int
		waits   []time.Duration
	}{
		{"a frame", 0, false, 1, []time.Duration{10 * ms, 20 * ms, 40 * ms}},
		{"a peer that queues", 15 * ms, true, 1, []time.Duration{10 * ms, 20 * ms, 40 * ms}},
		{"copies that have to come soon", 15 * ms, false, 1, []time.Duration{10 * ms, 10 * ms, 10 * ms}},
		{"others are missing", 0, false, 3, []time.Duration{10 * ms, 10 * ms}},
	} {
		t.Run(x.name, func(t *testing.T) {
			senderTests(t, func(t *testing.T, cfg SenderConfig) {
				cfg.MaxBetween, cfg.OneRun, cfg.AckDelay = x.between, x.queues, 0
				s := newSenderTest(t, cfg)
				s.measure(ms)
				s.send(x.frames)
				for i, wait := range x.waits {
					s.wantDeadline(wait)
					s.stall(wait)
					s.expire()
					s.ctl.probed, s.ctl.lost = nil, nil
					s.resendAll()
					s.stall(ms / 2)
					s.ack(2+i, 2+i)
					s.wantAcked(2 + i)
					if x.frames == 1 {
						s.send(1)
					}
				}
				s.ack(s.last, s.last)
				s.acked = nil
				s.measure(ms)
				s.send(1)
				s.wantDeadline(10 * ms)
			})
		})
	}
}
