package dgrdma

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// setupPath is a path of 10 Mbit/s between an endpoint that dials, and one that takes anybody.
type setupPath struct {
	*pair
	trip  time.Duration
	began time.Time

	mu     sync.Mutex
	left   map[string]int           // frames that left, by kind, of both
	placed map[string]time.Duration // when the first frame of a kind came to the other endpoint
}

func newSetupPath(t *testing.T, trip time.Duration, a, b Config) *setupPath {
	t.Helper()
	return newPathBetween(t, trip, a, b, simnet.Config{Poison: true})
}

// newPathBetween is newSetupPath of endpoints of which more is known, or less.
func newPathBetween(t *testing.T, trip time.Duration, a, b Config, wire simnet.Config) *setupPath {
	t.Helper()
	s := &setupPath{pair: &pair{t: t, net: simnet.New(1)}, trip: trip, left: map[string]int{}, placed: map[string]time.Duration{}}
	const rate = 10_000_000
	for _, x := range [][2]transport.Addr{{asking, asked}, {asked, asking}} {
		queue := s.net.NewBottleneck(bottleneck.Config{Rate: rate, Queue: max(int(trip.Seconds()*rate/8), 16_000)})
		s.net.Link(x[0], x[1], simnet.Link{Through: queue, Latency: trip / 2})
	}
	for i, cfg := range []*Config{&a, &b} {
		cfg.ID, cfg.OnEvent = EndpointID(1+i), s.note
		cfg.Trace = &Trace{
			FrameSent:     func(_ PeerName, f []byte, _ bool) { s.sent(f) },
			FrameReceived: func(_ PeerName, f []byte, _ Reason) { s.came(f) },
		}
	}
	s.a = s.openOn(asking, &a, wire)
	b.AcceptAny, b.Memory = true, s.region(1<<20)
	s.b = s.openOn(asked, &b, wire)
	s.began = time.Now()
	return s
}

func (s *setupPath) openOn(at transport.Addr, cfg *Config, wire simnet.Config) *Endpoint {
	s.t.Helper()
	e, err := New(maybeRecorded(s.t, s.net.Attach(at, wire)), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// kindOfFrame names what a frame is.
func kindOfFrame(b []byte) string {
	if !frame.IsSession(b) {
		f, err := frame.Parse(b)
		if err != nil {
			return err.Error()
		}
		h, _ := handshakeIn(&f)
		return h.Kind.String()
	}
	var f frame.SessionFrame
	if err := f.Decode(b); err != nil {
		return err.Error()
	}
	if f.Control != frame.NoControl {
		return f.Control.String()
	}
	return "data"
}

func (s *setupPath) sent(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[kindOfFrame(b)]++
}

func (s *setupPath) came(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := kindOfFrame(b); s.placed[k] == 0 {
		s.placed[k] = time.Since(s.began)
	}
}

func (s *setupPath) end() {
	s.a.Close()
	s.b.Close()
	s.net.Close()
}

// TestSetUpByAddress checks that a peer that is dialed by its address alone costs one round trip before data leaves, as it does by its complete string.
func TestSetUpByAddress(t *testing.T) {
	for _, trip := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		for _, byAddress := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v by address %v", trip, byAddress), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSetupPath(t, trip, Config{}, Config{})
					defer s.end()
					p := Peer{ID: 2, Addr: asked}
					if byAddress {
						var err error
						if p, err = s.a.Find(t.Context(), Peer{Addr: asked}); err != nil {
							t.Fatal(err)
						}
						if took := time.Since(s.began); took > trip+time.Millisecond || p.ID != 2 || p.Size != 1<<20 {
							t.Errorf("found %+v after %v", p, took)
						}
					}
					c := s.connect(s.a, p)
					if err := c.Write(t.Context(), write(64, []byte{1}, 0, 1)); err != nil {
						t.Fatal(err)
					}
					took := time.Since(s.began)
					s.mu.Lock()
					defer s.mu.Unlock()
					if s.placed["data"] > trip+trip/2+2*time.Millisecond || took > 2*trip+3*time.Millisecond {
						t.Errorf("delivered after %v, acknowledged after %v", s.placed["data"], took)
					}
					t.Logf("delivered after %v, acknowledged after %v; left %v", s.placed["data"], took, s.left)
				})
			})
		}
	}
}

// TestFramesOfSetUp checks that a long path is not flooded while a connection is set up: where nothing says that the peer is near, each frame leaves once, those
// of the peer too; where something does, and is wrong, a HELLO leaves three times at most, and the peer, which has asked nothing itself, knows by the CONFIRM how long a round trip takes. A transaction of several frames
// costs one question for how long they arrive, and does not wait for the answer.
func TestFramesOfSetUp(t *testing.T) {
	for _, trip := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		for _, far := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v far %v", trip, far), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newPathBetween(t, trip, Config{Memory: (&pair{t: t}).region(1 << 20)}, Config{}, simnet.Config{Poison: true, Far: far, MayNarrow: true})
					defer s.end()
					p, err := s.a.Find(t.Context(), Peer{Addr: asked})
					if err != nil {
						t.Fatal(err)
					}
					c := s.connect(s.a, p)
					if err := c.Write(t.Context(), write(64, pattern(1, 5000), 0, 1)); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(s.began); took > 2*trip+15*time.Millisecond {
						t.Errorf("5000 bytes took %v", took)
					}
					if err := s.b.Conns()[0].Write(t.Context(), write(64, pattern(1, 5000), 0, 1)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					again := uint64(0)
					for _, e := range []*Endpoint{s.a, s.b} {
						n := e.Stats().Counters
						again += n.RetransmitsFast + n.RetransmitsTimed
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					t.Logf("left %v, %d again", s.left, again)
					most := 1
					if !far {
						most = 3
					}
					if n := s.left["PROBE"]; n != 2 || again > 0 {
						t.Errorf("%d PROBEs, %d frames again", n, again)
					}
					for _, kind := range []string{"HELLO", "WELCOME", "CONFIRM"} {
						if n := s.left[kind]; n < 1 || n > most {
							t.Errorf("%d %s left", n, kind)
						}
					}
				})
			})
		}
	}
}

// TestSetUpThroughLoss checks that a first HELLO, WELCOME or CONFIRM that is lost costs a peer that is near 20 ms more, and one of which nothing says so a second, as TCP; and that a peer that
// starts later is found soon.
func TestSetUpThroughLoss(t *testing.T) {
	const trip = 10 * time.Millisecond
	for _, x := range []struct {
		name        string
		far         bool
		there, back int // frames that are lost
		later       time.Duration
		most        time.Duration
	}{
		{"HELLO", false, 1, 0, 0, 20*time.Millisecond + 2*trip},
		{"WELCOME", false, 0, 1, 0, 20*time.Millisecond + 2*trip},
		{"three HELLOs", false, 3, 0, 0, 420*time.Millisecond + 2*trip},
		{"far HELLO", true, 1, 0, 0, time.Second + 2*trip},
		{"the peer starts after 50 ms", false, 0, 0, 50 * time.Millisecond, 100*time.Millisecond + 2*trip},
		{"the peer starts after 1.1 s", false, 0, 0, 1100 * time.Millisecond, 1420*time.Millisecond + 2*trip},
		{"the far peer starts after 1.1 s", true, 0, 0, 1100 * time.Millisecond, 2*time.Second + 2*trip},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newPathBetween(t, trip, Config{}, Config{}, simnet.Config{Poison: true, Far: x.far})
				defer s.end()
				lost := func(n int) func(int, []byte) simnet.Verdict {
					return func(i int, _ []byte) simnet.Verdict {
						if i < n || time.Since(s.began) < x.later-trip/2 {
							return simnet.Drop()
						}
						return simnet.Deliver()
					}
				}
				s.net.Link(asking, asked, simnet.Link{Latency: trip / 2, Script: lost(x.there)})
				s.net.Link(asked, asking, simnet.Link{Latency: trip / 2, Script: lost(x.back)})
				c := s.connect(s.a, Peer{ID: 2, Addr: asked})
				if err := c.Write(t.Context(), write(64, []byte{1}, 0, 1)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(s.began); took > x.most+5*time.Millisecond {
					t.Errorf("took %v, want %v", took, x.most)
				}
			})
		})
	}
}
