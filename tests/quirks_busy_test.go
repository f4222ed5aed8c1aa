package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

const (
	busyLeast = 20 * time.Millisecond
	busyMost  = 200 * time.Millisecond
)

// dg1Busy writes 600 transactions of 1700 bytes to a driver on a machine with something else to do,
// with losses in both directions. It returns how long they took and which share of what was sent were
// frames sent again.
func dg1Busy(t *testing.T, udp bool, seed uint64, busy peers.Busy, out, back float64) (took time.Duration, again float64) {
	rigTest(t, seed, func(t *testing.T, r *rig) {
		busy.Seed = seed
		r.dg1(peers.DG1Config{UDP: udp, Buffer: peers.DefaultBuffer, Busy: busy})
		r.link(simnet.Link{Loss: out}, simnet.Link{Loss: back})
		r.dial(dgrdma.OpenCPI(udp), dgrdma.Config{})
		began := time.Now()
		r.send(600, 1700)
		took = time.Since(began)
		r.completed(false)
		s := r.conn.Stats()
		again = float64(s.RetransmitsFast+s.RetransmitsTimed) / float64(s.FramesSent)
	})
	return took, again
}

// TestQuirkD1BusyMachine checks that what the first driver needs longer for, as its machine is busy, is not
// drowned in copies (O1). Its two threads stand still for 20 to 200 ms now and then, or often, or half of the
// time, or always for 200 ms, and one frame in twenty is lost: all arrives within twice the time that it
// takes on an idle machine, and fewer than half of the frames are sent again. The frames that were sent
// when it named a run late are further back in its queue, and not lost (D1-19, observation V11).
func TestQuirkD1BusyMachine(t *testing.T) {
	for _, udp := range []bool{true, false} {
		for _, back := range []float64{0, 0.05} {
			t.Run(fmt.Sprintf("udp %v/acknowledgements lost %v", udp, back), func(t *testing.T) {
				seeds := 20
				if fixture.Race {
					seeds = 4 // which is ten times as slow
				}
				idle := make([]time.Duration, seeds)
				var mean time.Duration
				for seed := range idle {
					idle[seed], _ = dg1Busy(t, udp, uint64(seed+1), peers.Busy{}, 0.05, back)
					mean += idle[seed] / time.Duration(seeds)
				}
				t.Logf("on an idle machine %v, the mean of %d seeds", mean.Round(time.Millisecond), seeds)
				for _, busy := range []peers.Busy{
					{Every: time.Second, Least: busyLeast, Most: busyMost},
					{Every: 300 * time.Millisecond, Least: busyLeast, Most: busyMost},
					{Every: 100 * time.Millisecond, Least: busyLeast, Most: busyMost},
					{Every: 300 * time.Millisecond, Least: busyMost, Most: busyMost},
				} {
					var slowest, most float64
					for seed := range idle {
						took, again := dg1Busy(t, udp, uint64(seed+1), busy, 0.05, back)
						slower := took.Seconds() / idle[seed].Seconds()
						if slower > 2 || again > 0.5 {
							t.Errorf("%v, seed %d: took %v, on an idle machine %v; %.0f %% of the frames were sent again", busy, seed+1, took, idle[seed], 100*again)
						}
						slowest, most = max(slowest, slower), max(most, again)
					}
					t.Logf("standing still every %v for %v to %v: at most %.2f times as long, %.0f %% sent again", busy.Every, busy.Least, busy.Most, slowest, 100*most)
				}
			})
		}
	}
}

// TestQuirkD1StandsStill checks that all arrives, too, when its threads stand still for seconds (O1): longer
// than any time after which a frame is sent again, so that copies of it wait to be named one by one.
func TestQuirkD1StandsStill(t *testing.T) {
	for _, udp := range []bool{true, false} {
		for _, c := range []struct {
			busy peers.Busy
			loss float64
			most time.Duration
		}{
			{peers.Busy{Every: 3 * time.Second, Least: time.Second, Most: 3 * time.Second}, 0, 40 * time.Second},
			{peers.Busy{Every: time.Second, Least: time.Second, Most: time.Second}, 0.05, 2 * time.Minute},
		} {
			for seed := range uint64(10) {
				if took, again := dg1Busy(t, udp, seed+1, c.busy, c.loss, c.loss); again > 0.5 || took > c.most {
					t.Errorf("udp %v, %v, loss %v, seed %d: took %v, %.0f %% of the frames were sent again", udp, c.busy, c.loss, seed+1, took, 100*again)
				}
			}
		}
	}
}
