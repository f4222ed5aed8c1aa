package inspect_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// An endpoint of ours is started again, and its peer goes on: the first one
// restarted and the second did not, although both take new names.
func TestRestartOfOneOfOurs(t *testing.T) {
	for seed := range uint64(8) {
		var file bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(seed)
			defer n.Close()
			addr := [2]transport.Addr{simnet.Addr(1), simnet.Addr(2)}
			n.Link(addr[0], addr[1], simnet.Link{Latency: time.Millisecond})
			n.Link(addr[1], addr[0], simnet.Link{Latency: time.Millisecond})
			dice := rand.New(rand.NewPCG(seed, 7))
			open := func(i int, wire transport.Conn) (*endpoint.Endpoint, *endpoint.Conn) {
				memory, err := endpoint.NewRegion(1 << 16)
				if err != nil {
					t.Fatal(err)
				}
				e, err := endpoint.New(wire, &endpoint.Config{ID: frame.EndpointID(1 + i), Memory: memory, Entropy: dice.Uint32})
				if err != nil {
					t.Fatal(err)
				}
				c, err := e.Connect(endpoint.Peer{ID: frame.EndpointID(2 - i), Addr: addr[1-i], Size: 1 << 16})
				if err != nil {
					t.Fatal(err)
				}
				return e, c
			}
			write := func(c *endpoint.Conn, times int) {
				for range times {
					// The first one after a restart may learn of it.
					c.Write(context.Background(), &endpoint.Transaction{
						Segments: []endpoint.Segment{{Addr: 64, Bytes: make([]byte, 3000)}}, Completion: endpoint.Word(8, 1),
					})
				}
			}
			wire, err := tap.New(n.Attach(addr[0], simnet.Config{}), &file, tap.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a, toB := open(0, wire)
			defer a.Close()
			b, toA := open(1, n.Attach(addr[1], simnet.Config{}))
			write(toB, 20)
			write(toA, 20)
			b.Close()
			time.Sleep(time.Second)
			b, toA = open(1, n.Attach(addr[1], simnet.Config{}))
			defer b.Close()
			write(toA, 20)
			write(toB, 20)
			time.Sleep(time.Second)
		})
		c, err := captured.NewFileReader(&file, captured.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := analyze(t, c)
		if a, b := flowFrom(t, r, 1), flowFrom(t, r, 2); len(a.Restarts) != 0 || len(b.Restarts) != 1 || b.Resent != 0 || b.Strays+b.Conflicts+a.Strays+a.Conflicts != 0 {
			t.Errorf("seed %d: restarts %v and %v, %d copies", seed, a.Restarts, b.Restarts, b.Resent)
		}
		if got := said(r); !strings.Contains(got, "Endpoint 2 restarted after ") || strings.Contains(got, "Endpoint 1 restarted") || strings.Contains(got, "problem: ") {
			t.Errorf("seed %d: %s", seed, got)
		}
	}
}
