package ack

import (
	"slices"
	"testing"
	"time"
)

// cumulativePath is a path of 1 Gbit/s that loses nothing and keeps the order, to a peer that
// acknowledges each frame by the first id that it lacks.
type cumulativePath struct {
	s    Sender
	now  Instant
	way  time.Duration
	busy Instant // the wire is, until then
	lack Wide    // the first id that the peer lacks, when all under way is there
	got  map[Wide]bool
	back []cumulativeAck // in the order in which they come
}

type cumulativeAck struct {
	at   Instant
	lack Wide
}

func (p *cumulativePath) send(w Wide) {
	const frameTakes = 11200 * time.Nanosecond // 1400 bytes
	p.busy = max(p.busy, p.now).Add(frameTakes)
	for p.got[w] = true; p.got[p.lack]; p.lack++ {
		delete(p.got, p.lack)
	}
	at := p.busy.Add(2 * p.way)
	if n := len(p.back); n > 0 {
		at = max(at, p.back[n-1].at)
	}
	p.back = append(p.back, cumulativeAck{at, p.lack})
}

// run keeps the window full for that long, and returns how many frames left, and how many of
// them again.
func (p *cumulativePath) run(d time.Duration) (sent, again int) {
	s := &p.s
	for end := p.now.Add(d); p.now < end; {
		for q, ok := s.NextLost(p.now); ok; q, ok = s.NextLost(p.now) {
			s.Resend(p.now, q)
			p.send(s.Wide(q))
			again++
			sent++
		}
		for s.Lost() == 0 && s.Limit(p.now, 1400) == Open {
			p.send(s.Wide(s.Track(p.now, 1400)))
			sent++
		}
		deadline, armed := s.Deadline()
		if len(p.back) > 0 && (!armed || p.back[0].at <= deadline) {
			p.now = p.back[0].at
			s.AppendAcked(nil, p.now, Range{p.back[0].lack.Seq(), 0})
			s.EndBatch(p.now)
			p.back = slices.Delete(p.back, 0, 1)
			continue
		}
		p.now = max(p.now, deadline)
		s.Expire(p.now, p.now)
	}
	return sent, again
}

// A path becomes longer once, and loses nothing: what a timeout sends again for nothing makes the
// next one later. While the window is always full, everything is acknowledged behind a copy, and
// nothing else would: every frame left twice, for ever.
func TestSenderCumulativePathBecomesLonger(t *testing.T) {
	for _, longer := range []time.Duration{ms, 5 * ms, 20 * ms, 50 * ms} {
		p := cumulativePath{now: Instant(time.Hour), way: 50 * time.Microsecond, lack: 1, got: make(map[Wide]bool)}
		p.s.Init(p.now, SenderConfig{
			First: 1, Window: 32, Span: 128, MinRTO: 5 * ms, MaxRTO: sec, AckDelay: 2 * ms, AckEvery: 1, GiveUp: 10 * sec,
			Cumulative: true, FreshAlone: true,
		}, &FixedWindow{})
		p.run(sec)
		p.way = longer / 2
		for i, most := range []int{100, 0, 0, 0, 0} {
			if sent, again := p.run(sec); again > most {
				t.Errorf("%v, second %d: %d of %d frames left again; smoothed %v", longer, i, again, sent, p.s.RTT().Smoothed())
			}
		}
	}
}

// That a copy arrived is believed if it took as long as round trips do: then what left before it
// and was not acknowledged with it is lost. Else the first one may have been slow, and the others
// come behind it.
func TestSenderCumulativeCopies(t *testing.T) {
	for took, lost := range map[time.Duration][]int{12 * ms: {4, 5, 6, 7, 8, 9, 10}, 31 * ms: nil} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			cfg.Cumulative, cfg.FreshAlone = true, true
			s := newSenderTest(t, cfg)
			s.measure(10 * ms) // up to 30 ms are usual
			s.send(9)          // 2 to 10
			s.advanceToTimer()
			s.wantProbed(2, 3)
			s.resend(2, 3)
			s.stall(took)
			s.batch(2)
			s.wantAcked(2)
			s.wantLost(lost...)
		})
	}
}

// Empty frames that ask for acknowledgements take no more than one place beyond the window, until
// three timeouts passed in a row; and none beyond the span.
func TestSenderMayProbe(t *testing.T) {
	for _, c := range []struct {
		sent, timeouts int
		want           bool
	}{{1, 1, true}, {4, 1, true}, {5, 1, false}, {5, 2, false}, {5, 3, true}, {7, 3, true}, {8, 3, false}} {
		senderTests(t, func(t *testing.T, cfg SenderConfig) {
			cfg.Cumulative, cfg.FreshAlone, cfg.Window, cfg.Span = true, true, 4, 8
			s := newSenderTest(t, cfg)
			for i := range c.sent {
				s.s.Track(s.now, i)
			}
			s.s.timeouts = uint(c.timeouts)
			if got := s.s.MayProbe(); got != c.want {
				t.Errorf("%d sent, %d timeouts: %v", c.sent, c.timeouts, got)
			}
		})
	}
}
