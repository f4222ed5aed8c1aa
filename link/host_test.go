package link

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestOpen: a host has the memory that was asked for, or 72 MiB, but for what letters
// take; what cannot be opened leaves no endpoint behind.
func TestOpen(t *testing.T) {
	errBroken := errors.New("no such device")
	for _, c := range []struct {
		name   string
		memory int
		region bool
		fails  error
		want   uint64 // bytes for links; 0: none
		says   string
	}{
		{"by default", 0, false, nil, 72<<20 - 16<<10, ""},
		{"the least", 32 << 10, false, nil, 16 << 10, ""},
		{"less", 32<<10 - 1, false, nil, 0, "link: a host has 32768 to 4294967296 bytes of memory, not 32767; 0 means 75497472"},
		{"less than nothing", -1, false, nil, 0, "bytes of memory, not -1;"},
		{"more than there are addresses", 1<<32 + 1, false, nil, 0, "bytes of memory, not 4294967297;"},
		{"of an endpoint that has memory", 0, true, nil, 0, "link: open udp:here: the endpoint has no memory but that of its links; open it by dgrdma.Open, and have links on it by On"},
		{"of an endpoint that cannot be", 0, false, errBroken, 0, "no such device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				var ep *dgrdma.Endpoint
				cfg := &Config{Memory: c.memory, Endpoint: dgrdma.Config{ID: 1}, Open: func(e *dgrdma.Config) (*dgrdma.Endpoint, error) {
					if c.fails != nil {
						return nil, c.fails
					}
					if r, ok := e.Memory.(*dgrdma.Region); !ok || len(r.Bytes()) != 0 {
						t.Errorf("an endpoint with memory besides links: %v", e.Memory)
					}
					var err error
					ep, err = dgrdma.New(n.sim.Attach(simnet.Addr(1), simnet.Config{}), e)
					return ep, err
				}}
				if c.region {
					cfg.Endpoint.Memory, _ = dgrdma.NewRegion(1 << 16)
				}
				h, err := Open("udp:here", cfg)
				if c.want == 0 {
					if h != nil || err == nil || !strings.Contains(err.Error(), c.says) || c.fails != nil && !errors.Is(err, c.fails) {
						t.Errorf("%v", err)
					}
					if ep != nil && !errors.Is(ep.Err(), dgrdma.ErrClosed) {
						t.Errorf("its endpoint is still there: %v", ep.Err())
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if s := h.Stats(); s.Memory != c.want || s.Free != c.want {
					t.Errorf("%d bytes for links, %d free, want %d", s.Memory, s.Free, c.want)
				}
				h.Close()
			})
		})
	}
}

// TestNumbersOfLinks begin anywhere, so that nobody knows those of a host that was opened
// anew, and none is 0.
func TestNumbersOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		if x, y := a.newNumber(), b.newNumber(); x == y {
			t.Errorf("two hosts begin at %d", x)
		}
		a.number.Store(1<<32 - 1)
		if x := a.newNumber(); x != 1 {
			t.Errorf("behind the last number comes %d", x)
		}
	})
}

// TestCloseEndsAll that a host has, at once and as often as it is asked to. What was
// delivered before can still be received.
func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, b, out, in := pair(t, n, nil, nil)
		p, err := b.Listen("another", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Out.Send(t.Context(), 7, []byte("delivered")); err != nil {
			t.Fatal(err)
		}
		accepted := make(chan error, 1)
		go func() { _, err := p.Accept(t.Context()); accepted <- err }()
		synctest.Wait()
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-in.Done():
				if err := in.Err(); !errors.Is(err, ErrClosed) {
					t.Errorf("the link: %v", err)
				}
			default:
				t.Error("the link is not done")
			}
		}
		if err := <-accepted; !errors.Is(err, ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		if _, err := b.Listen("port", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Listen: %v", err)
		}
		if b.beat.Stop() {
			t.Error("the host still looks after peers")
		}
		b.heartbeat() // one that had begun
		if b.beat.Stop() {
			t.Error("the host looks after peers again")
		}
		if m, err := in.In.Recv(t.Context()); err != nil || string(m.Bytes) != "delivered" {
			t.Errorf("%q, %v", m.Bytes, err)
		}
		if _, err := in.In.Recv(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		in.Close()
		nothingLeft(t, b)
	})
}
