package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestLongPathIsMeasuredSoon checks that the frames of the first transactions are sent again over a
// path longer than the first timeout, as nothing is known of it, and no others.
func TestLongPathIsMeasuredSoon(t *testing.T) {
	for _, latency := range []time.Duration{5 * time.Millisecond, 12 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{link: simnet.Link{Latency: latency}})
			defer p.close()
			again := uint64(0)
			for i := range 50 {
				if err := p.toB.Write(t.Context(), write(0, pattern(1, 2*1400), 1<<19, 1)); err != nil {
					t.Fatal(err)
				}
				s := p.toB.Stats()
				if i < 2 { // each has a timeout twice as long
					again = s.RetransmitsTimed
				} else if n := s.RetransmitsTimed + s.RetransmitsFast; n > again {
					t.Fatalf("latency %v: transaction %d is sent again in %d frames, round trip %v", latency, i+1, n-again, s.RTT)
				}
			}
			if s := p.toB.Stats(); (s.RTT - 2*latency).Abs() > latency/10 {
				t.Errorf("latency %v: a round trip of %v", latency, s.RTT)
			}
		})
	}
}

// TestHellosCross checks that what is posted while a HELLO is under way has another one leave, and that the answer to the first is no
// measure of the second.
func TestHellosCross(t *testing.T) {
	const latency = 10 * time.Millisecond
	for wait := time.Duration(0); wait <= 2*latency; wait += time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{link: simnet.Link{Latency: latency}})
			defer p.close()
			time.Sleep(wait)
			if err := p.toB.Write(t.Context(), write(0, pattern(1, 64), 1<<19, 1)); err != nil {
				t.Fatal(err)
			}
			if s := p.toB.Stats(); s.MinRTT > 0 && s.MinRTT < 2*latency {
				t.Errorf("posted after %v: a round trip of %v", wait, s.MinRTT)
			}
		})
	}
}
