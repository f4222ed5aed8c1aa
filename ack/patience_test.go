package ack

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// twoLinks sends a frame each 50 us over two links in turn, seven at a time, of 1 ms and of longer
// than that, of which one in loseEach is lost, and returns how many left again of the last 2000.
func twoLinks(cfg SenderConfig, longer time.Duration, loseEach int) (again int, s *Sender) {
	s = new(Sender)
	now := Instant(time.Hour)
	s.Init(now, cfg, &FixedWindow{})
	type arrival struct {
		at Instant
		q  frame.Seq
	}
	var under []arrival // in the order of arrival
	sent, next := 0, now
	leave := func(q frame.Seq) {
		sent++
		if loseEach > 0 && sent%loseEach == 0 {
			return
		}
		a := arrival{now.Add(ms + time.Duration(sent/7%2)*longer), q}
		i := len(under)
		for i > 0 && under[i-1].at > a.at {
			i--
		}
		under = append(under, arrival{})
		copy(under[i+1:], under[i:])
		under[i] = a
	}
	const frames, last = 60000, 2000
	for n := 0; n < frames; {
		at := next
		if len(under) > 0 {
			at = min(at, under[0].at)
		}
		if d, armed := s.Deadline(); armed {
			at = min(at, max(d, now))
		}
		switch now = at; {
		case len(under) > 0 && at == under[0].at:
			q := under[0].q
			under = under[1:]
			s.AppendAcked(nil, now, Range{q, 1})
			s.EndBatch(now)
		case at == next:
			if next = now.Add(50 * time.Microsecond); s.Limit(now, 1400) == Open {
				n++
				leave(s.Track(now, 1400))
			}
		default:
			s.Expire(now, now)
		}
		for q, ok := s.NextLost(now); ok; q, ok = s.NextLost(now) {
			s.Resend(now, q)
			if leave(q); n > frames-last {
				again++
			}
		}
	}
	return again, s
}

// Of a path of two links, which frames take in turn, no frame leaves again once the longer one is
// known, and few more than are lost.
func TestSenderTwoLinks(t *testing.T) {
	for _, longer := range []time.Duration{ms / 2, ms, 2 * ms, 5 * ms} {
		for _, c := range []struct{ loseEach, most int }{{0, 0}, {101, 60}, {21, 250}} {
			cfg := testConfig()
			cfg.First = 1
			if again, s := twoLinks(cfg, longer, c.loseEach); again > c.most {
				t.Errorf("%v longer, one of %d lost: %d of 2000 left again; %+v", longer, c.loseEach, again, s.patience)
			}
		}
	}
}

// A window that gets full while a late frame is waited for is not left to stand still: copies come
// much sooner.
func TestSenderTwoLinksOfSmallWindow(t *testing.T) {
	cfg := testConfig()
	cfg.First, cfg.Window = 1, 16
	if again, s := twoLinks(cfg, 9*ms, 0); again < 500 {
		t.Errorf("%d of 2000 left again; %+v", again, s.patience)
	}
}

// Where one of 20 bursts of 44 frames is lost, and none comes late, trials are as rare as where single frames are
// lost as often: frames are left alone for a fortieth of the time at most, and the window stands still for a hundredth.
func TestSenderTrialsOfBursts(t *testing.T) {
	const burst, pause, way = 44, 20 * time.Microsecond, 100 * time.Microsecond
	for _, frames := range []int{1, burst} {
		cfg := testConfig()
		cfg.First, cfg.Window, cfg.Span = 1, 8192, 12288
		s := new(Sender)
		now := Instant(time.Hour)
		s.Init(now, cfg, &FixedWindow{})
		type flight struct {
			at Instant
			r  Range
		}
		var under []flight
		sent := 0
		var alone, still time.Duration
		leave := func(r Range) {
			if sent++; sent%20 != 7 {
				under = append(under, flight{now.Add(2 * way), r})
			}
		}
		const bursts = 100000
		for range bursts {
			for len(under) > 0 && under[0].at <= now {
				s.AppendAcked(nil, now, under[0].r)
				under = under[1:]
				s.EndBatch(now)
			}
			if at, armed := s.Deadline(); armed && at <= now {
				s.Expire(now, now)
			}
			var again Range
			for q, ok := s.NextLost(now); ok; q, ok = s.NextLost(now) {
				if again.Count > 0 && q != again.Start.Add(int(again.Count)) {
					leave(again)
					again.Count = 0
				}
				if again.Count == 0 {
					again.Start = q
				}
				again.Count++
				s.Resend(now, q)
			}
			if again.Count > 0 {
				leave(again)
			}
			r := Range{Start: s.Next()}
			for int(r.Count) < frames && s.Limit(now, 1400) == Open {
				s.Track(now, 1400)
				r.Count++
			}
			if r.Count > 0 {
				leave(r)
			} else {
				still += pause
			}
			if s.patience.until != 0 {
				alone += pause
			}
			now = now.Add(pause)
		}
		if alone > bursts*pause/40 || still > bursts*pause/100 {
			t.Errorf("%d frames each: of %v one was left alone for %v, and the window stood still for %v: %+v", frames, bursts*pause, alone, still, s.patience)
		}
	}
}
