package endpoint

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestGoodbye: who closes an endpoint, or a connection, tells peers of its own kind. What is
// pending to it fails at once, as does what is posted later, for a reason that is no silence;
// what it acknowledged before is done.
func TestGoodbye(t *testing.T) {
	for name, end := range map[string]func(p *pair) error{
		"Close":      func(p *pair) error { return p.b.Close() },
		"Shutdown":   func(p *pair) error { return p.b.Shutdown(context.Background()) },
		"Conn.Close": func(p *pair) error { return p.toA.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
				defer p.close()
				if err := p.toB.Write(t.Context(), write(64, pattern(1, 5000), 0, 1)); err != nil {
					t.Fatal(err)
				}
				p.net.Link(addrA, addrB, simnet.Link{Down: true})
				pending := make(chan error, 1)
				x := write(64, pattern(2, 5000), 0, 2)
				x.Done = func(_ *Transaction, err error) { pending <- err }
				if err := p.toB.Post(x); err != nil {
					t.Fatal(err)
				}
				began, done := time.Now(), p.toB.Done()
				if err := end(p); err != nil {
					t.Error(err)
				}
				<-done
				if took := time.Since(began); took > 2*time.Millisecond {
					t.Errorf("it was told after %v", took)
				}
				for what, err := range map[string]error{
					"pending": <-pending, "posted later": p.toB.Post(write(64, nil, 0, 3)), "of the connection": p.toB.Err(),
				} {
					var peer *PeerError
					var timeout net.Error
					if !errors.Is(err, ErrPeerClosed) || !errors.Is(err, ErrPeerDown) || !errors.As(err, &peer) || peer.ID != 2 ||
						!errors.As(err, &timeout) || timeout.Timeout() || err.Error() != "dgrdma: peer 2 at "+addrB.String()+": the peer closed the connection" {
						t.Errorf("%s: %v", what, err)
					}
				}
				synctest.Wait()
				var told []Event
				p.mu.Lock()
				for _, e := range p.events {
					if e.Kind == PeerDown {
						told = append(told, e)
					}
				}
				p.mu.Unlock()
				if len(told) != 1 || told[0].Conn != p.toB || !errors.Is(told[0].Err, ErrPeerClosed) {
					t.Errorf("events %+v", told)
				}
			})
		})
	}
}

// TestGoodbyeBehindTheLastAcknowledgement: a callback closes the connection by which the
// transaction comes that it was called for. That one is done.
func TestGoodbyeBehindTheLastAcknowledgement(t *testing.T) {
	for name, end := range map[string]func(p *pair){
		"endpoint": func(p *pair) { p.b.Close() }, "connection": func(p *pair) { p.toA.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p *pair
				m := &endsAt{value: 7}
				m.Region, _ = NewRegion(1 << 20)
				p = newPair(t, pairConfig{b: Config{Memory: m}})
				defer p.close()
				m.end = func() { end(p) }
				if err := p.toB.Write(t.Context(), write(64, pattern(1, 5000), 0, 7)); err != nil {
					t.Errorf("the last transaction: %v", err)
				}
				time.Sleep(time.Second)
				if err := p.toB.Write(t.Context(), write(64, nil, 0, 8)); !errors.Is(err, ErrPeerClosed) {
					t.Errorf("behind it: %v", err)
				}
			})
		})
	}
}

// endsAt is memory that calls end when a completion word has that value.
type endsAt struct {
	*Region
	value uint32
	end   func()
}

func (m *endsAt) Complete(src frame.EndpointID, msg *frame.Message) {
	m.Region.Complete(src, msg)
	if msg.CompletionValue == m.value {
		m.end()
	}
}

// TestGoodbyeOfAnotherLife ends nothing: one that is forged and does not know both lives, nor
// one that the network held back.
func TestGoodbyeOfAnotherLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		e := p.open(addrB, &Config{ID: 2, Memory: p.region(4096)})
		defer e.Close()
		conn := p.connect(e, Peer{ID: 1, Addr: addrA})
		s := newStranger(t, n, addrA, 1, 2, addrB)
		s.greet(7)
		mine := s.theirs
		for _, h := range []frame.Hello{
			{Life: 8, Peer: mine, Leaves: true}, {Life: 7, Peer: mine + 1, Leaves: true}, {Life: mine, Peer: 7, Leaves: true},
		} {
			before := conn.Stats().RefusedBy(RefusedForeign)
			s.hello(h)
			s.recv(time.Millisecond)
			if st := conn.Stats(); st.Down || st.RefusedBy(RefusedForeign) != before+1 {
				t.Errorf("%+v: down %v, refused %d", h, st.Down, st.RefusedBy(RefusedForeign)-before)
			}
		}
		s.hello(frame.Hello{Life: 7, Peer: mine, Leaves: true})
		s.recv(time.Millisecond)
		if !errors.Is(conn.Err(), ErrPeerClosed) {
			t.Errorf("the true one: %v", conn.Err())
		}
		if err := conn.Reset(0); err != nil {
			t.Fatal(err)
		}
		s.greet(9)
		s.hello(frame.Hello{Life: 7, Peer: mine, Leaves: true})
		s.recv(time.Millisecond)
		if conn.Err() != nil {
			t.Errorf("the one before: %v", conn.Err())
		}
	})
}

// TestClosedPeersMakeRoom: more clients than a host may have come and go one after the other.
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

// TestDismissedPeerIsNotToldGoodbye: one that has to make room for another was silent, and may
// go on later: it is taken for one that comes anew.
func TestDismissedPeerIsNotToldGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		server := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), AcceptAny: true, MaxPeers: 1, GiveUp: time.Second})
		defer server.Close()
		var conns []*Conn
		for i := range 2 {
			e := p.open(simnet.Addr(uint32(10+i)), &Config{ID: frame.EndpointID(10 + i)})
			defer e.Close()
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			if err := c.Write(t.Context(), write(64, pattern(i, 8), 0, 1)); err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			time.Sleep(10 * time.Second)
		}
		if err := conns[0].Err(); err != nil {
			t.Errorf("it was told: %v", err)
		}
		if err := conns[0].Write(t.Context(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("what it writes next: %v", err)
		}
		if err := conns[0].Write(t.Context(), write(64, nil, 0, 1)); err != nil {
			t.Error(err)
		}
	})
}

// TestConnectToAClosedPeer: one that came by itself and left does not keep the program from
// connecting to it.
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

// TestClosedPeerBeginsAnew: an endpoint that comes again at the address is connected to by
// Reset.
func TestClosedPeerBeginsAnew(t *testing.T) {
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

// TestGoodbyeAndBackAtOnce: who closes a connection and makes it again is answered as soon as the
// first time, though goodbye and introduction come together.
func TestGoodbyeAndBackAtOnce(t *testing.T) {
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

// TestGoodbyeBehindReset: the peer believes the life that Reset ended as long as it was not told
// otherwise, and hears that it is over.
func TestGoodbyeBehindReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if err := p.toA.Reset(0); err != nil {
			t.Fatal(err)
		}
		if err := p.toA.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		if err := p.toB.Err(); !errors.Is(err, ErrPeerClosed) {
			t.Errorf("5 ms later the peer's connection has %v", err)
		}
	})
}

// TestConnectToARevivedPeer: a connection that was learned, went down and was reset in the very
// callback that tells so is no dead one: Connect returns it.
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
		server.Close() // before its peer says goodbye: who is told that amid Close can reset nothing
	})
}

// TestGoodbyeOvertakes: a goodbye that comes before anything that shows that the peer's life ever was, as the network turned
// them around, ends the connection as soon as something does.
func TestGoodbyeOvertakes(t *testing.T) {
	for name, shows := range map[string]func(s *stranger, mine uint32){
		"an answer":          func(s *stranger, mine uint32) { s.hello(frame.Hello{Life: 7, Peer: mine, Tells: true}) },
		"data":               func(s *stranger, _ uint32) { s.send(2, data(7, 1, 1, 64, pattern(1, 8))) },
		"an acknowledgement": func(s *stranger, mine uint32) { s.alone(stamp(mine, 2, 0), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				p := &pair{t: t, net: n}
				e := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), OnEvent: p.note})
				defer e.Close()
				s := newStranger(t, n, addrA, 1, 2, addrB)
				conn := p.connect(e, Peer{ID: 1, Addr: addrA})
				mine := s.toldLife()
				s.hello(frame.Hello{Life: 7, Peer: mine})
				s.recv(time.Millisecond)
				s.hello(frame.Hello{Life: 7, Peer: mine, Leaves: true})
				s.recv(time.Millisecond)
				if err := conn.Err(); err != nil {
					t.Fatalf("it may be what was offered, and never began: %v", err)
				}
				shows(s, mine)
				s.recv(time.Millisecond)
				if err := conn.Err(); !errors.Is(err, ErrPeerClosed) {
					t.Errorf("the connection has %v", err)
				}
				if n := p.count(PeerDown, RefusedNone); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		})
	}
}
