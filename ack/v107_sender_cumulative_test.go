package ack

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

var sweepStep = flag.Duration("step", 6750*time.Microsecond, "between the paths that become longer")

// A path becomes longer once, and loses nothing: what leaves again for nothing ends, whatever the
// path, the window, and what is sent. While everything is acknowledged behind a copy nothing is a
// measure, and each frame would leave twice, for ever.
func TestSenderCumulativePathBecomesLonger(t *testing.T) {
	all := []int{2, 8, 32}
	for _, window := range fixture.Fewer(all, all[:1]) {
		for _, load := range [][2]int{{1, 1}, {1, 14}, {4, 3}, {20, 14}} {
			for _, probes := range []bool{true, false} {
				l := cumulativeLoad{window: window, transactions: load[0], frames: load[1], probes: probes}
				t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
					for longer := ms; longer <= 60*ms; longer += *sweepStep {
						w := newCumulativeWorld(l)
						w.advance(sec / 5)
						w.way = longer / 2
						w.advance(9 * sec)
						sent, again, arrived := w.over(sec)

						l.never = true
						w = newCumulativeWorld(l)
						w.way = longer / 2
						w.advance(sec / 5)
						_, _, most := w.over(sec)
						if again > sent/5 || arrived < most/2 {
							t.Errorf("%v: after 9 s %d of %d frames left again in a second, and %d arrived, of %d that can",
								longer, again, sent, arrived, most)
						}
						l.never = false
					}
				})
			}
		}
	}
}

// A peer that has room for few frames loses some of each window, so that nothing is a measure.
// It is not taken for far away: nothing stands still for a second.
func TestSenderCumulativeLittleRoom(t *testing.T) {
	all := []int{1, 2, 3, 4, 7}
	for _, room := range fixture.Fewer(all, all[:2]) {
		for _, jitter := range []time.Duration{0, 2800 * time.Microsecond} {
			for _, transactions := range []int{4, 20} {
				w := newCumulativeWorld(cumulativeLoad{window: 32, transactions: transactions, frames: 7, probes: true})
				w.advance(sec / 5)
				w.room, w.jitter = room, jitter
				sent, again, arrived := w.over(30 * sec)
				t.Logf("room for %d, jitter %v, %d transactions: %d frames a second, %d of %d left again, longest without %v",
					room, jitter, transactions, arrived/30, again, sent, w.longest)
				if arrived < 30*30 || w.longest > 2*sec {
					t.Errorf("room for %d, jitter %v, %d transactions: %d frames arrived in 30 s, none done for %v",
						room, jitter, transactions, arrived, w.longest)
				}
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
