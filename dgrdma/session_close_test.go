package dgrdma

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestClosedPeersMakeRoom checks that more clients than a host may have can come and go one after the other.
func TestClosedPeersMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		server := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), AcceptAny: true, MaxPeers: 3, PeersPerHost: 2})
		defer server.Close()
		began := time.Now()
		for i := range 20 {
			e := p.open(addrA, &Config{ID: frame.EndpointID(100 + i)})
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			if err := c.Write(t.Context(), write(64, pattern(i, 8), 0, uint32(i))); err != nil {
				t.Fatalf("client %d, after %v: %v", i, time.Since(began), err)
			}
			e.Close()
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestConnectToAClosedPeer checks that the program can connect to a peer that came by itself and left.
func TestConnectToAClosedPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		server := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), AcceptAny: true})
		defer server.Close()
		memory := p.region(4096)
		for i := range 3 {
			e := p.open(addrA, &Config{ID: 1, Memory: memory, AcceptAny: true})
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			if err := c.Write(t.Context(), write(64, pattern(i, 8), 0, uint32(i+1))); err != nil {
				t.Fatal(err)
			}
			e.Close()
			time.Sleep(time.Second)
		}
		e := p.open(addrA, &Config{ID: 1, Memory: memory, AcceptAny: true})
		defer e.Close()
		c := p.connect(server, Peer{ID: 1, Addr: addrA})
		if err := c.Write(t.Context(), write(64, nil, 0, 9)); err != nil || memory.Load32(0) != 9 {
			t.Errorf("%v, word %d", err, memory.Load32(0))
		}
	})
}

// TestClosedPeerComesAgain checks that Reset connects to an endpoint that comes again at the address.
func TestClosedPeerComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		p.b.Close()
		time.Sleep(time.Second)
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, AcceptAny: true})
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 2)); !errors.Is(err, ErrPeerClosed) {
			t.Error(err)
		}
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 3)); err != nil || p.memB.Load32(0) != 3 {
			t.Errorf("%v, word %d", err, p.memB.Load32(0))
		}
	})
}

// TestCloseAndConnectAtOnce checks that a program which closes a connection and connects again is answered as soon as the
// first time, though BYE and HELLO come together.
func TestCloseAndConnectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		link := simnet.Link{Latency: 50 * time.Microsecond}
		n.Link(addrA, addrB, link)
		n.Link(addrB, addrA, link)
		server := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), AcceptAny: true})
		defer server.Close()
		e := p.open(addrA, &Config{ID: 1})
		defer e.Close()
		for i := range 100 {
			began := time.Now()
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			if err := c.Write(t.Context(), write(64, pattern(i, 8), 0, uint32(i+1))); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			if took := time.Since(began); took > 5*time.Millisecond { // of which 2 are the delay of acknowledgements
				t.Fatalf("round %d took %v", i, took)
			}
			c.Close()
		}
	})
}

// TestConnectToARevivedPeer checks that Connect returns a connection that was learned, went down and was reset in the
// callback that tells so.
func TestConnectToARevivedPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		var server *Endpoint
		var got *Conn
		var err error
		server = p.open(addrB, &Config{ID: 2, Memory: p.region(4096), AcceptAny: true, OnEvent: func(e Event) {
			if e.Kind == PeerDown {
				if err := e.Conn.Reset(0); err != nil {
					t.Error(err)
				}
				got, err = server.Connect(Peer{ID: 1, Addr: addrA})
				if got != e.Conn {
					t.Errorf("Connect returned %v, %v, which is not the connection that was reset", got, err)
				}
			}
		}})
		defer server.Close()
		memory := p.region(4096)
		for i := range 2 {
			e := p.open(addrA, &Config{ID: 1, Memory: memory})
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			if err := c.Write(t.Context(), write(64, nil, 0, uint32(i+1))); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				e.Close()
				time.Sleep(time.Second)
				continue
			}
			defer e.Close()
		}
		if got == nil || err != nil {
			t.Fatalf("%v, %v", got, err)
		}
		if err := got.Write(t.Context(), write(64, nil, 0, 9)); err != nil || memory.Load32(0) != 9 {
			t.Errorf("%v, word %d", err, memory.Load32(0))
		}
		server.Close() // before the BYE of its peer: a callback within Close can reset nothing
	})
}

// TestCloseAfterReset checks that the peer hears of a Close that follows a Reset at once, though it has the session which Reset ended: it
// asks for another one, and is refused, or finds no endpoint.
func TestCloseAfterReset(t *testing.T) {
	inEachWay(t, Config{}, Config{}, func(t *testing.T, p *couple) {
		toA := p.meet()
		if err := errors.Join(toA.Reset(0), toA.Close()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := p.toB.Write(t.Context(), write(64, nil, 0, 1))
		if took := time.Since(began); !errors.Is(err, ErrPeerRestarted) || took > 2*coupleLatency {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
