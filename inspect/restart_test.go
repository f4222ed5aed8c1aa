package inspect_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/tap"
)

// An endpoint of ours ends and is started again, and its peer goes on: the report says which one ended their session, although the
// next one has new epochs of both.
func TestRestartOfOneOfOurs(t *testing.T) {
	for seed := range uint64(8) {
		var file bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(seed)
			defer n.Close()
			addr := [2]transport.Addr{simnet.Addr(1), simnet.Addr(2)}
			n.Link(addr[0], addr[1], simnet.Link{Latency: time.Millisecond})
			n.Link(addr[1], addr[0], simnet.Link{Latency: time.Millisecond})
			lives := uint64(0)
			open := func(i int, wire transport.Conn) (*dgrdma.Endpoint, *dgrdma.Conn) {
				memory, err := dgrdma.NewRegion(1 << 16)
				if err != nil {
					t.Fatal(err)
				}
				lives++
				e, err := dgrdma.New(wire, &dgrdma.Config{ID: frame.EndpointID(1 + i), Memory: memory, Entropy: rand.New(rand.NewPCG(seed, 7+lives)).Uint32})
				if err != nil {
					t.Fatal(err)
				}
				c, err := e.Connect(dgrdma.Peer{ID: frame.EndpointID(2 - i), Addr: addr[1-i], Size: 1 << 16})
				if err != nil {
					t.Fatal(err)
				}
				return e, c
			}
			write := func(c *dgrdma.Conn, times int) {
				for range times {
					// The first one after a restart may learn of it.
					c.Write(context.Background(), &dgrdma.Transaction{
						Segments: []dgrdma.Segment{{Addr: 64, Bytes: make([]byte, 3000)}}, Completion: dgrdma.Word(8, 1),
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
		a, b := flowFrom(t, r, 1), flowFrom(t, r, 2)
		for _, f := range []*inspect.Flow{a, b} {
			if len(f.Restarts) != 0 || f.Resent != 0 || f.Strays+f.Conflicts != 0 || f.Missing != 0 || len(f.Sessions) != 2 || f.Sessions[0].Ended != "BYE" || f.Sessions[0].Sender == 0 ||
				f.Sessions[1].Sender == f.Sessions[0].Sender || f.Sessions[1].Tag == f.Sessions[0].Tag {
				t.Errorf("seed %d, from endpoint %d: %d restarts, %d copies, sessions %+v", seed, f.From.ID, len(f.Restarts), f.Resent, f.Sessions)
			}
		}
		if a.Sessions[0].Sender != b.Sessions[0].Receiver || a.Sessions[1].Sender != b.Sessions[1].Receiver {
			t.Errorf("seed %d: sessions %+v and %+v", seed, a.Sessions, b.Sessions)
		}
		if got := said(r); !strings.Contains(got, "Endpoint 2 ended the first one with BYE;") || strings.Contains(got, "Endpoint 1 ended the first") || strings.Contains(got, "problem: ") {
			t.Errorf("seed %d: %s", seed, got)
		}
	}
}
