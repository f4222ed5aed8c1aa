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
