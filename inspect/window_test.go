package inspect_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestWindowOfAPacedSender checks that no window is blamed where the sender has a pace of its own, and one is where frames leave as soon as
// others are acknowledged (N5).
func TestWindowOfAPacedSender(t *testing.T) {
	const frames, trip = 4000, 10 * time.Millisecond
	for _, c := range []struct {
		name   string
		window int           // 0: none
		pace   time.Duration // 0: none
		every  int           // frames are acknowledged
		told   bool
	}{
		{"paced", 0, 22 * time.Microsecond, 1, false},
		{"paced, acknowledged by 20", 0, 22 * time.Microsecond, 20, false},
		{"paced below a window", 1000, 22 * time.Microsecond, 8, false},
		{"held by a window", 456, 0, 1, true},
		{"held by a window, acknowledged by 20", 456, 0, 20, true},
		{"held by a window, and nearly as slow", 64, 20 * time.Microsecond, 8, true},
	} {
		dice := rand.New(rand.NewPCG(7, 7))
		type ack struct {
			at    time.Duration
			first frame.Seq
			n     int
		}
		s := newStory()
		began, now, next, ready := s.at, time.Duration(0), 0, time.Duration(0)
		var acks []ack
		flying := 0
		for next < frames || len(acks) > 0 {
			canSend := next < frames && (c.window == 0 || flying < c.window)
			if canSend && (len(acks) == 0 || max(ready, now) <= acks[0].at) {
				now = max(now, ready)
				p := s.packet(1, 2, frameWith(1, 2, frame.Seq(next), whole(uint32(next))))
				p.Time = began.Add(now)
				s.a.Add(p)
				flying++
				if next++; next%c.every == 0 || next == frames {
					n := (next-1)%c.every + 1
					at := now + trip + time.Duration(dice.IntN(100_000))
					if len(acks) > 0 {
						at = max(at, acks[len(acks)-1].at+1)
					}
					acks = append(acks, ack{at, frame.Seq(next - n), n})
				}
				ready = now + c.pace + time.Duration(dice.IntN(1000))
				continue
			}
			k := acks[0]
			acks, now = acks[1:], max(now, k.at)
			flying -= k.n
			b := frameWith(2, 1, frame.Seq(next))
			frame.PutAck(b, k.first, uint8(k.n))
			p := s.packet(2, 1, b)
			p.Time = began.Add(now)
			s.a.Add(p)
			if !canSend {
				ready = max(ready, now+3*time.Microsecond) // it has to wake up
			}
		}
		if got := said(s.a.Report()); strings.Contains(got, "A window of ") != c.told {
			t.Errorf("%s: said %s", c.name, got)
		}
	}
}
