package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/peers"
)

// dg2Quick is a driver with the default socket buffer, of which it takes a frame every 23 us: 43,000
// a second, as it was seen to do.
var dg2Quick = peers.DG2Config{Buffer: peers.DefaultBuffer, FrameTime: 23 * time.Microsecond}

// dg2Burst posts n transactions of size bytes at once to a driver. It returns how many arrived
// whole, and after how long all were done.
func dg2Burst(r *rig, is peers.DG2Config, p dgrdma.Profile, cfg dgrdma.Config, n, size int) (whole int, took time.Duration) {
	d := r.dg2(is)
	r.dial(p, cfg)
	data, results := rigPattern(1, size), make(chan error, n)
	began := time.Now()
	for i := range n {
		tx := &dgrdma.Transaction{
			Completion: dgrdma.Word(rigFlag, uint32(i+1)),
			Done:       func(_ *dgrdma.Transaction, err error) { results <- err },
		}
		if size > 0 {
			tx.Segments = []dgrdma.Segment{{Addr: rigData, Bytes: data}}
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
				whole, took := dg2Burst(r, dg2Quick, dgrdma.OpenCPI2(), dgrdma.Config{}, c.n, c.size)
				if whole != c.n {
					t.Errorf("%d of %d arrived whole, %d frames were lost", whole, c.n, r.double.Counters().Overrun)
				}
				frames := r.double.Counters().Frames
				if rate := float64(frames-46) / took.Seconds(); frames > 500 && (rate < 800 || rate > 900) {
					t.Errorf("%.0f frames a second", rate)
				}
			})
		})
	}
}

// Observation V10: who knows the peer better says so, in its profile or with a
// controller.
func TestPaceCanBeChanged(t *testing.T) {
	quick := dgrdma.OpenCPI2()
	quick.Drain *= 100
	free := dgrdma.Config{NewController: func(int) ack.Controller { return &ack.FixedWindow{} }}
	for _, c := range []struct {
		name string
		p    dgrdma.Profile
		cfg  dgrdma.Config
	}{{"profile", quick, dgrdma.Config{}}, {"controller", dgrdma.OpenCPI2(), free}} {
		t.Run(c.name, func(t *testing.T) {
			rigTest(t, 10, func(t *testing.T, r *rig) {
				whole, took := dg2Burst(r, dg2Quick, c.p, c.cfg, 600, 5000)
				if whole == 600 || took > 40*time.Millisecond {
					t.Errorf("%d arrived whole in %v: the pace is not changed", whole, took)
				}
			})
		})
	}
}

// TestQuirkD2BusyMachine checks that nothing is lost at the default pace when the second driver stands still
// for up to 50 ms (O2). The pace before, 25 times that, loses some in nearly every run (observation V12), and
// longer pauses lose some, too: what is sent to it leaves no trace, so that only the driver could tell. Transactions
// are posted all at once, or each fills half of its buffer at once, now and then.
func TestQuirkD2BusyMachine(t *testing.T) {
	before := dgrdma.OpenCPI2()
	before.Drain = 50_000_000
	for _, c := range []struct {
		name   string
		buffer int
		p      dgrdma.Profile
		cfg    dgrdma.Config
		long   time.Duration
		loses  bool
	}{
		{"default", peers.DefaultBuffer, dgrdma.OpenCPI2(), dgrdma.Config{}, 50 * time.Millisecond, false},
		{"default, longer", peers.DefaultBuffer, dgrdma.OpenCPI2(), dgrdma.Config{}, 200 * time.Millisecond, true},
		{"as it was", peers.DefaultBuffer, before, dgrdma.Config{}, 50 * time.Millisecond, true},
		{"large buffer", 8 << 20, dgrdma.OpenCPI2(), dgrdma.Config{PeerBuffer: 8 << 20}, 50 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			least, most, sum := 600, 0, time.Duration(0)
			for seed := uint64(1); seed <= 10; seed++ {
				is := dg2Quick
				is.Buffer, is.Busy = c.buffer, peers.Busy{Seed: seed, Every: 100 * time.Millisecond, Least: 20 * time.Millisecond, Most: c.long}
				rigTest(t, seed, func(t *testing.T, r *rig) {
					whole, took := dg2Burst(r, is, c.p, c.cfg, 600, 5000)
					least, most, sum = min(least, 600-whole), max(most, 600-whole), sum+took
				})
				if c.loses {
					continue
				}
				rigTest(t, seed, func(t *testing.T, r *rig) {
					d := r.dg2(is)
					r.dial(c.p, c.cfg)
					for i := range 100 {
						large := &dgrdma.Transaction{
							Segments: []dgrdma.Segment{{Addr: rigData, Bytes: rigPattern(i, 60_000)}}, Completion: dgrdma.Word(rigFlag, uint32(i+1)),
						}
						if err := r.conn.Write(t.Context(), large); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Second / 10)
					}
					if n := len(d.Completions()); n != 100 {
						t.Errorf("seed %d: %d of 100 large ones were lost", seed, 100-n)
					}
				})
			}
			if c.loses && most == 0 || !c.loses && most > 0 {
				t.Errorf("%d of 600 were lost", most)
			}
			t.Logf("standing still for up to %v: %d to %d of 600 lost, done after %v", c.long, least, most, (sum / 10).Round(time.Millisecond))
		})
	}
}
