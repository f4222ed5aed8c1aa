package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/tests/peers"
)

// dg2Burst posts n transactions of size bytes at once to a driver with the default
// socket buffer, of which it takes a frame every 23 us, 2 ms worth at a time: 43,000 a
// second, as it was seen to do. It returns how many arrived whole, and after
// how long all were done.
func dg2Burst(r *rig, p endpoint.Profile, cfg endpoint.Config, n, size int) (whole int, took time.Duration) {
	d := r.dg2(peers.DG2Config{Buffer: 212_992, FrameTime: 23 * time.Microsecond})
	r.dial(p, cfg)
	data, results := rigPattern(1, size), make(chan error, n)
	began := time.Now()
	for i := range n {
		tx := &endpoint.Transaction{
			Completion: endpoint.Word(rigFlag, uint32(i+1)),
			Done:       func(_ *endpoint.Transaction, err error) { results <- err },
		}
		if size > 0 {
			tx.Segments = []endpoint.Segment{{Addr: rigData, Bytes: data}}
		}
		if err := r.conn.Post(tx); err != nil {
			r.t.Fatal(err)
		}
	}
	for range n {
		if err := <-results; err != nil {
			r.t.Fatal(err)
		}
	}
	took = time.Since(began)
	time.Sleep(time.Second)
	return len(d.Completions()), took
}

// Observation V10 (docs/peers.md): the second driver never acknowledges, so what its
// socket buffer has no room for is lost without a word. We send no faster than
// it drains.
func TestNothingOverrunsWhoNeverAcknowledges(t *testing.T) {
	for _, c := range []struct{ n, size int }{{600, 5000}, {600, 100_000}, {2000, 1450}, {16_000, 64}, {3000, 0}} {
		t.Run(fmt.Sprintf("%d of %d bytes", c.n, c.size), func(t *testing.T) {
			rigTest(t, 10, func(t *testing.T, r *rig) {
				whole, took := dg2Burst(r, endpoint.OpenCPI2(), endpoint.Config{}, c.n, c.size)
				if whole != c.n {
					t.Errorf("%d of %d arrived whole, %d frames were lost", whole, c.n, r.double.Counters().Overrun)
				}
				frames := r.double.Counters().Frames
				if rate := float64(frames-46) / took.Seconds(); frames > 500 && (rate < 19_000 || rate > 23_000) {
					t.Errorf("%.0f frames a second", rate)
				}
			})
		})
	}
}

// Observation V10: who knows the peer better says so, in its profile or with a
// controller.
func TestPaceCanBeChanged(t *testing.T) {
	quick := endpoint.OpenCPI2()
	quick.Drain *= 4
	free := endpoint.Config{NewController: func(int) ack.Controller { return &ack.FixedWindow{} }}
	for _, c := range []struct {
		name string
		p    endpoint.Profile
		cfg  endpoint.Config
	}{{"profile", quick, endpoint.Config{}}, {"controller", endpoint.OpenCPI2(), free}} {
		t.Run(c.name, func(t *testing.T) {
			rigTest(t, 10, func(t *testing.T, r *rig) {
				whole, took := dg2Burst(r, c.p, c.cfg, 600, 5000)
				if whole == 600 || took > 40*time.Millisecond {
					t.Errorf("%d arrived whole in %v: the pace is not changed", whole, took)
				}
			})
		})
	}
}
