package link

import (
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestEndpointFails checks that Accept and Dial in a host whose transport has failed, before or during
// the call, fail at once, whether or not the host knows a peer.
func TestEndpointFails(t *testing.T) {
	for i := range 8 {
		manual, known, before := i&1 != 0, i&2 != 0, i&4 != 0
		t.Run(fmt.Sprintf("manual=%v known=%v before=%v", manual, known, before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				b := n.host(2, nil)
				if _, err := b.Listen("port", nil); err != nil {
					t.Fatal(err)
				}
				var wire *simnet.Conn
				a, err := Open("", &Config{Endpoint: dgrdma.Config{ID: 1, Manual: manual}, Open: func(e *dgrdma.Config) (*dgrdma.Endpoint, error) {
					wire = n.sim.Attach(simnet.Addr(1), simnet.Config{})
					return dgrdma.New(wire, e)
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // before a peer is given up
				defer cancel()
				l, err := a.Listen("port", nil)
				if err != nil {
					t.Fatal(err)
				}
				if known {
					if _, err := dial(ctx, a, 2, "none", nil); !errors.Is(err, ErrRefused) {
						t.Fatal(err)
					}
				}
				fails := func() { wire.Close() }
				if before {
					fails()
					synctest.Wait()
					if manual {
						a.Endpoint().Progress(0)
					}
				} else {
					time.AfterFunc(time.Second, fails)
				}
				began := time.Now()
				both := make(chan error, 2)
				go func() {
					_, err := l.Accept(ctx)
					both <- err
				}()
				go func() {
					n.withoutPeers(2, b.Close) // the peer gets no answer
					_, err := dial(ctx, a, 2, "none", nil)
					both <- err
				}()
				for range 2 {
					if err := <-both; !errors.Is(err, stdnet.ErrClosed) || ctx.Err() != nil {
						t.Errorf("after %v: %v", time.Since(began), err)
					}
				}
				if d := time.Since(began); d > 1100*time.Millisecond {
					t.Errorf("after %v", d)
				}
			})
		})
	}
}
