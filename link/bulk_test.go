package link

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// saturated is a connection at 1 Gbit/s that a bulk link saturates.
type saturated struct {
	t         *testing.T
	net       *net
	a, b      *Host
	stop      context.CancelFunc
	delivered atomic.Uint64 // bytes of bulk
}

func saturate(t *testing.T, latency time.Duration, busy bool) *saturated {
	t.Helper()
	n := newNet(t, 1)
	n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Rate: 1e9, Latency: latency})
	n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Rate: 1e9, Latency: latency})
	s := &saturated{t: t, net: n, a: n.host(1, nil), b: n.host(2, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	out, in := join(t, s.a, s.b, "bulk", nil, &Options{Buffers: 64, Size: 64 << 10})
	go func() {
		for m, err := range in.In.Messages(ctx) {
			if err != nil {
				return
			}
			s.delivered.Add(uint64(len(m.Bytes)))
		}
	}()
	if busy {
		go func() {
			data := make([]byte, 64<<10)
			for out.Out.Send(ctx, 0, data) == nil {
			}
		}()
	}
	time.Sleep(200 * time.Millisecond) // the window has opened
	return s
}

// TestLittleWithBulk checks that, while a bulk link saturates 1 Gbit/s, a message of 64 bytes of
// another link arrives within a millisecond more than the network takes. Dial is answered within two.
// The bulk link loses nothing by it.
func TestLittleWithBulk(t *testing.T) {
	long := fixture.Fewer(400*time.Millisecond, 150*time.Millisecond)
	all := []time.Duration{0, 50 * time.Microsecond}
	for _, latency := range fixture.Fewer(all, all[:1]) {
		var rates [2]float64
		for i, talk := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := saturate(t, latency, true)
				defer s.stop()
				out, in := join(t, s.a, s.b, "little", nil, &Options{Buffers: 8, Size: 64})
				arrived := make(chan time.Time, 1)
				go func() {
					for range in.In.Messages(context.Background()) {
						arrived <- time.Now()
					}
				}()
				port, err := s.b.Listen("again", &Options{Buffers: 2, Size: 64})
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					for {
						if _, err := port.Accept(context.Background()); err != nil {
							return
						}
					}
				}()
				began, before := time.Now(), s.delivered.Load()
				var messages, dials []time.Duration
				for time.Since(began) < long {
					time.Sleep(5*time.Millisecond + 77*time.Microsecond)
					if !talk {
						continue
					}
					at := time.Now()
					if err := out.Out.Send(context.Background(), 0, make([]byte, 64)); err != nil {
						t.Fatal(err)
					}
					messages = append(messages, (<-arrived).Sub(at)-latency)
					at = time.Now()
					l, err := dial(context.Background(), s.a, 2, "again", nil)
					if err != nil {
						t.Fatal(err)
					}
					dials = append(dials, time.Since(at)-2*latency)
					go l.Close()
				}
				rates[i] = float64(s.delivered.Load()-before) * 8 / time.Since(began).Seconds()
				if !talk {
					return
				}
				m, d := slices.Max(messages), slices.Max(dials)
				t.Logf("latency %v: %d messages within %v, dials within %v, bulk %.4f Gbit/s", latency, len(messages), m, d, rates[i]/1e9)
				if m > time.Millisecond || d > 2*time.Millisecond {
					t.Errorf("latency %v: messages within %v, want 1 ms; dials within %v, want 2 ms", latency, m, d)
				}
			})
		}
		if rates[0] < 0.93e9 || rates[1] < 0.99*rates[0] {
			t.Errorf("latency %v: bulk moves %.4f Gbit/s, and %.4f with others", latency, rates[0]/1e9, rates[1]/1e9)
		}
	}
}
