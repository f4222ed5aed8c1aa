package netconn

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// far puts a path of that rate, round trip and loss between the two hosts, with a queue of a round trip.
func (w *world) far(rate int64, trip time.Duration, loss float64) {
	for _, d := range [][2]uint32{{1, 2}, {2, 1}} {
		slow := w.sim.NewBottleneck(bottleneck.Config{Rate: rate, Queue: int(float64(rate) / 8 * trip.Seconds()), Overhead: 28})
		w.sim.Link(simnet.Addr(d[0]), simnet.Addr(d[1]), simnet.Link{Through: slow, Latency: trip / 2, Loss: loss})
	}
}

// TestManyDials checks that dials at the same time do not wait for each other on a far path: TCP takes a
// round trip for each, and a link one more where the hosts have not met.
func TestManyDials(t *testing.T) {
	const dials, trip = 20, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.far(100e6, trip, 0)
		l := listen(t, w.b, "port", nil)
		ended := make(chan time.Time, dials)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					io.Copy(io.Discard, c)
					ended <- time.Now()
					c.Close()
				}()
			}
		}()
		for _, trips := range []int{2, 1} {
			began := time.Now()
			var all sync.WaitGroup
			var conns [dials]net.Conn
			for i := range dials {
				all.Go(func() {
					var err error
					if conns[i], err = (&Dialer{Host: w.a}).Dial(Network, l.Addr().String()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if took, most := time.Since(began), time.Duration(trips)*trip*6/5; took > most {
				t.Errorf("%d dials took %v, want %v at most", dials, took, most)
			}
			// Their ends do not wait for each other either.
			began = time.Now()
			for _, c := range conns {
				c.Close()
			}
			for range dials {
				if took := (<-ended).Sub(began); took > trip*6/10 {
					t.Errorf("an end took %v", took)
				}
			}
			time.Sleep(2 * trip)
			if s := w.b.Stats(); len(s.Links) != 0 || s.Ended != 0 {
				t.Errorf("%d links are left there, and of %d it is not known that they ended", len(s.Links), s.Ended)
			}
		}
	})
}

// TestFarCopy checks that io.Copy fills a far path: of 100 Mbit/s, or a slower one where the race detector looks on.
func TestFarCopy(t *testing.T) {
	rate := fixture.Fewer[int64](100e6, 20e6)
	for _, c := range []struct {
		trip     time.Duration
		loss     float64
		measured time.Duration // with losses some seconds differ from others by a tenth
		least    float64       // percent of the rate
	}{
		{100 * time.Millisecond, 0, 8 * time.Second, 90},
		{100 * time.Millisecond, 0.01, 24 * time.Second, 88},
		{300 * time.Millisecond, 0, 8 * time.Second, 88},
		{300 * time.Millisecond, 0.01, 24 * time.Second, 84},
	} {
		if testing.Short() && (c.loss > 0 || c.trip > 100*time.Millisecond) {
			continue // each takes a minute with the race detector
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.far(rate, c.trip, c.loss)
			out, in := w.pair()
			var got counter
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if _, err := io.Copy(&got, in); err != nil {
					t.Error(err)
				}
			}()
			go io.Copy(out, endless{}) // until the connection is closed
			time.Sleep(60 * c.trip)
			before := got.Load()
			time.Sleep(c.measured)
			if share := float64(got.Load()-before) * 8 * 100 / float64(rate) / c.measured.Seconds(); share < c.least {
				t.Errorf("%v, a loss of %v: %.1f %% of the path, want %.0f", c.trip, c.loss, share, c.least)
			}
			out.Close()
			<-ended
		})
	}
}

// counter counts what is written to it.
type counter struct{ atomic.Int64 }

func (c *counter) Write(b []byte) (int, error) { c.Add(int64(len(b))); return len(b), nil }

// endless has something to read at any time.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
