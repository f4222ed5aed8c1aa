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
	s := &setupPath{pair: &pair{t: t, net: simnet.New(1)}, trip: trip, left: map[string]int{}, placed: map[string]time.Duration{}}
	const rate = 10_000_000
	for _, x := range [][2]transport.Addr{{asking, asked}, {asked, asking}} {
		queue := s.net.NewBottleneck(bottleneck.Config{Rate: rate, Queue: max(int(trip.Seconds()*rate/8), 3000)})
		s.net.Link(x[0], x[1], simnet.Link{Through: queue, Latency: trip / 2})
	}
	for i, cfg := range []*Config{&a, &b} {
		cfg.ID, cfg.OnEvent = EndpointID(1+i), s.note
		cfg.Trace = &Trace{
			FrameSent:     func(_ PeerName, f []byte, _ bool) { s.sent(f) },
			FrameReceived: func(_ PeerName, f []byte, _ Reason) { s.came(f) },
		}
	}
	s.a = s.open(asking, &a)
	b.AcceptAny, b.Memory = true, s.region(1<<20)
	s.b = s.open(asked, &b)
	s.began = time.Now()
	return s
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
