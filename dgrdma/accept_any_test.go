package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestAcceptAnyLater checks that unknown sources are refused until the endpoint accepts them, and
// again afterwards, and that those that were learned stay.
func TestAcceptAnyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		knock := func(n uint32) *Endpoint {
			e := p.open(simnet.Addr(10+n), &Config{ID: 100})
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			if err := c.Post(write(64*n, pattern(int(n), 8), 4*n, n)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			return e
		}
		came := func(n uint32) bool { return p.memB.Load32(4*n) == n }
		first := knock(1)
		defer first.Close()
		if came(1) || len(p.b.Conns()) != 1 || p.b.Stats().Refused[RefusedSource] == 0 {
			t.Errorf("an unknown source was taken in: %+v", p.b.Stats())
		}
		p.b.AcceptAny(true)
		time.Sleep(2 * time.Second)
		if !came(1) || len(p.b.Conns()) != 2 {
			t.Errorf("an unknown source was not taken in: %+v", p.b.Stats())
		}
		p.b.AcceptAny(false)
		second := knock(2)
		defer second.Close()
		if came(2) || len(p.b.Conns()) != 2 {
			t.Error("a second unknown source was taken in")
		}
	})
}

// TestConnectAdoptsLearnedPeer checks that a peer that spoke before it was connected to keeps its
// connection, with what arrived, and that the connection learns how large the peer is.
func TestConnectAdoptsLearnedPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		ends := make([]*Endpoint, 2)
		for i, addr := range []transport.Addr{addrA, addrB} {
			mem, err := NewRegion(4096)
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(n.Attach(addr, simnet.Config{}), &Config{ID: frame.EndpointID(1 + i), Memory: mem, AcceptAny: true})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ends[i] = e
		}
		a, b := ends[0], ends[1]
		toB, err := a.Connect(Peer{ID: 2, Addr: addrB, Size: 4096})
		if err != nil {
			t.Fatal(err)
		}
		if err := toB.Write(context.Background(), write(64, pattern(1, 100), 0, 1)); err != nil {
			t.Fatal(err)
		}
		toA, err := b.Connect(Peer{ID: 1, Addr: addrA, Size: 4096})
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Conns()) != 1 || b.Conns()[0] != toA || toA.Stats().Completions != 1 || toA.Peer().Size != 4096 {
			t.Errorf("%d connections, %d completions, size %d", len(b.Conns()), toA.Stats().Completions, toA.Peer().Size)
		}
		if err := toA.Post(write(4000, pattern(1, 100), 0, 1)); !errors.Is(err, ErrBounds) {
			t.Errorf("beyond the peer's memory: %v", err)
		}
		if err := toA.Write(context.Background(), write(64, pattern(2, 100), 0, 2)); err != nil {
			t.Error(err)
		}
		if err := toB.Write(context.Background(), write(64, pattern(3, 100), 0, 3)); err != nil {
			t.Error(err)
		}
		if _, err := b.Connect(Peer{ID: 1, Addr: addrA}); !errors.Is(err, ErrPeerExists) {
			t.Errorf("connected again: %v", err)
		}
	})
}
