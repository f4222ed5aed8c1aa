package link

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCreditsOnAFarPath checks that credits do not wait for each other: a link moves 0.7 of its buffers in
// each round trip, although the words that give buffers back are lost and overtake each other.
func TestCreditsOnAFarPath(t *testing.T) {
	for _, c := range []struct{ loss, least float64 }{{0, 0.7}, {0.02, 0.15}} {
		synctest.Test(t, func(t *testing.T) {
			const buffers, size, trip, trips = 64, 4096, 100 * time.Millisecond, 200
			n := newNet(t, 4)
			there := n.host(2, nil)
			made := there.serve(t, "port", &Options{Buffers: buffers, Size: size})
			far := simnet.Link{Latency: trip / 2, Loss: c.loss, Reorder: c.loss}
			n.sim.Link(simnet.Addr(1), simnet.Addr(2), far)
			n.sim.Link(simnet.Addr(2), simnet.Addr(1), far)
			out, err := dial(t.Context(), n.host(1, nil), 2, "port", nil)
			if err != nil {
				t.Fatal(err)
			}
			in := <-made
			moved := make(chan uint64)
			go func() {
				for _, err := range in.In.Messages(t.Context()) {
					if err != nil {
						t.Error(err)
					}
				}
				moved <- in.Stats().In.Messages
			}()
			began := time.Now()
			for time.Since(began) < trips*trip {
				if err := out.Out.Send(t.Context(), 0, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
			}
			if err := out.Close(); err != nil {
				t.Error(err)
			}
			if share := float64(<-moved) / (trips * buffers); share < c.least {
				t.Errorf("with a loss of %v, %.2f of the buffers in each round trip, want %.2f", c.loss, share, c.least)
			}
		})
	}
}
