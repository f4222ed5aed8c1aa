package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestOpen checks that a host has the memory that was asked for, or 72 MiB, without what letters take.
// A host that cannot be opened leaves no endpoint open.
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
		{"less", 32<<10 - 1, false, nil, 0, "link: memory of 32767 bytes: need 32768 to 4294967296, or 0 for 75497472"},
		{"less than nothing", -1, false, nil, 0, "memory of -1 bytes: need"},
		{"more than there are addresses", 1<<32 + 1, false, nil, 0, "memory of 4294967297 bytes: need"},
		{"of an endpoint that has memory", 0, true, nil, 0, "link: open udp:here: Config.Endpoint.Memory is set: open the endpoint by dgrdma.Open, and make its links by On"},
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
						t.Errorf("an endpoint with memory and links: %v", e.Memory)
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

// TestOpenBesideEvents checks that events of peers may come while Open has not returned: the endpoint is open before it
// serves links. The race detector sees what Open still writes then.
func TestOpenBesideEvents(t *testing.T) {
	peer, err := dgrdma.Open("udp:127.0.0.1", &dgrdma.Config{ID: 2, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	opened, down := make(chan struct{}), make(chan struct{})
	cfg := &Config{Endpoint: dgrdma.Config{ID: 1, AcceptAny: true}}
	cfg.Endpoint.OnEvent = func(ev dgrdma.Event) {
		if ev.Kind == dgrdma.PeerDown {
			close(down)
		}
	}
	cfg.Open = func(e *dgrdma.Config) (*dgrdma.Endpoint, error) {
		ep, err := dgrdma.Open("udp:127.0.0.1", e)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err := peer.DialContext(ctx, ep.URL())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(ctx, &dgrdma.Transaction{}); err != nil && !errors.Is(err, dgrdma.ErrNoService) {
			t.Error(err) // by either answer the endpoint knows it
		}
		go func() {
			<-opened
			peer.Close()
		}()
		return ep, nil
	}
	h, err := Open("", cfg)
	if err != nil {
		t.Fatal(err)
	}
	close(opened) // the test touches nothing of the host from here on: the goroutine that receives learns nothing by that
	<-down
	h.Close()
}
