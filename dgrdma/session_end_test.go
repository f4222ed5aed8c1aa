package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// byes has the BYEs counted that an endpoint sends.
func byes(n *int) *Trace {
	return &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
		if f, err := frame.ParseSession(b); frame.IsSession(b) && err == nil && f.Control == frame.ControlBye {
			*n++
		}
	}}
}

// bye sends the BYE of a session of those epochs.
func (s *fakePeer) bye(local, theirs uint32) {
	s.t.Helper()
	b := make([]byte, 64)
	h := s.header(0)
	h.Tag = session.Tag(session.Epoch(theirs), session.Epoch(local))
	s.raw(b[:frame.PutBye(b, &h, frame.Bye{Sender: local, Receiver: theirs})])
}

// TestByeEndsAtOnce checks that the peers of an endpoint, or of a connection, that is closed are told: what is pending fails at
// once, as does what is posted later, for a reason that is no silence. What was acknowledged before is done. BYE is sent once.
func TestByeEndsAtOnce(t *testing.T) {
	for name, end := range map[string]func(e *Endpoint, c *Conn) error{
		"Close":      func(e *Endpoint, _ *Conn) error { return e.Close() },
		"Shutdown":   func(e *Endpoint, _ *Conn) error { return e.Shutdown(context.Background()) },
		"Conn.Close": func(_ *Endpoint, c *Conn) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			inEachWay(t, Config{}, Config{Trace: byes(&sent)}, func(t *testing.T, p *couple) {
				sent = 0
				toA := p.meet()
				p.link(simnet.Link{Down: true}, simnet.Link{Latency: coupleLatency})
				pending := make(chan error, 1)
				x := write(64, pattern(2, 5000), 0, 2)
				x.Done = func(_ *Transaction, err error) { pending <- err }
				if err := p.toB.Post(x); err != nil {
					t.Fatal(err)
				}
				began, done := time.Now(), p.toB.Done()
				if err := end(p.b, toA); err != nil {
					t.Error(err)
				}
				<-done
				if took := time.Since(began); took != coupleLatency {
					t.Errorf("it was told after %v", took)
				}
				words := "dgrdma: peer 2 at " + p.at[1].String() + ": the peer closed the connection"
				for what, err := range map[string]error{
					"pending": <-pending, "posted later": p.toB.Post(write(64, nil, 0, 3)), "of the connection": p.toB.Err(),
				} {
					var peer *PeerError
					var timeout net.Error
					if !errors.Is(err, ErrPeerClosed) || !errors.Is(err, ErrPeerDown) || !errors.As(err, &peer) || peer.ID != 2 ||
						!errors.As(err, &timeout) || timeout.Timeout() || err.Error() != words {
						t.Errorf("%s: %v", what, err)
					}
				}
				time.Sleep(time.Minute)
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
				if sent != 1 {
					t.Errorf("BYE was sent %d times", sent)
				}
			})
		})
	}
}

// TestByeIsOfASession checks that a connection without a session has no BYE to send: one that asks, one that is down, one that was closed
// already, and one that Reset had ask again.
func TestByeIsOfASession(t *testing.T) {
	for name, end := range map[string]func(p *couple){
		"asks":   func(p *couple) { p.connect(p.a, Peer{ID: 3, Addr: p.at[1]}).Close() },
		"down":   func(p *couple) { p.b.Close(); time.Sleep(time.Second); p.toB.Close() },
		"closed": func(p *couple) { p.toB.Close(); p.toB.Close(); p.a.Close() },
		"asks again": func(p *couple) {
			p.link(simnet.Link{Latency: time.Hour}, simnet.Link{})
			p.toB.Reset(0)
			p.toB.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			inEachWay(t, Config{Trace: byes(&sent)}, Config{}, func(t *testing.T, p *couple) {
				sent = 0
				p.meet()
				end(p)
				want := 0
				if name == "closed" {
					want = 1
				}
				if synctest.Wait(); sent != want {
					t.Errorf("BYE was sent %d times", sent)
				}
			})
		})
	}
}

// TestByeIsLost checks that a peer whose BYE was lost is known to be gone at the next frame to it, as long as its endpoint is
// there, or by a bell of KeepAlive.
func TestByeIsLost(t *testing.T) {
	for _, writes := range []bool{true, false} {
		t.Run(fmt.Sprintf("writes %v", writes), func(t *testing.T) {
			inEachWay(t, Config{KeepAlive: time.Second}, Config{}, func(t *testing.T, p *couple) {
				toA := p.meet()
				p.link(simnet.Link{Latency: coupleLatency}, simnet.Link{Down: true})
				toA.Close()
				p.b.AcceptAny(true) // so that there can be a session again
				time.Sleep(time.Millisecond)
				p.link(simnet.Link{Latency: coupleLatency}, simnet.Link{Latency: coupleLatency})
				if err := p.toB.Err(); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if writes {
					err := p.toB.Write(t.Context(), write(64, nil, 0, 2))
					if took := time.Since(began); !errors.Is(err, ErrPeerRestarted) || took > 2*coupleLatency {
						t.Errorf("after %v: %v", took, err)
					}
				} else {
					time.Sleep(time.Second + 10*coupleLatency)
					if n := p.toB.Stats().Restarts; n != 1 {
						t.Errorf("%d restarts", n)
					}
				}
				if err := p.toB.Write(t.Context(), write(64, nil, 0, 3)); err != nil || p.memB.Load32(0) != 3 {
					t.Errorf("%v, word %d", err, p.memB.Load32(0))
				}
			})
		})
	}
}

// TestByeOfAnotherSession checks that a BYE ends nothing that does not name both epochs, in its header and in itself, nor one of a
// session that is over.
func TestByeOfAnotherSession(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		mine := s.theirs
		for _, of := range [][2]uint32{{life + 1, mine}, {life, mine + 1}, {mine, life}, {0, mine}, {life, 0}} {
			refused := c.Stats().RefusedBy(RefusedForeign)
			s.bye(of[0], of[1])
			b := make([]byte, 64)
			h := s.header(0) // of the session
			s.raw(b[:frame.PutBye(b, &h, frame.Bye{Sender: of[0], Receiver: of[1]})])
			if got := s.recv(time.Millisecond); len(got) > 0 || c.Err() != nil {
				t.Errorf("BYE of %#x and %#x: answered by %d frames; %v", of[0], of[1], len(got), c.Err())
			}
			if n := c.Stats().RefusedBy(RefusedForeign) - refused; n != 2 {
				t.Errorf("BYE of %#x and %#x: %d refused, want both", of[0], of[1], n)
			}
		}
		s.bye(life, mine)
		s.recv(time.Millisecond)
		if !errors.Is(c.Err(), ErrPeerClosed) {
			t.Errorf("the true one: %v", c.Err())
		}
		if err := c.Reset(0); err != nil {
			t.Fatal(err)
		}
		s.bye(life, mine) // while it asks
		s.recv(time.Millisecond)
		s.greet(9)
		s.recv(time.Millisecond)
		s.bye(life, mine)
		s.recv(time.Millisecond)
		if st := c.Stats(); c.Err() != nil || !st.Ready() {
			t.Errorf("the one before: %v", c.Err())
		}
	})
}

// TestByeOvertakesConfirm checks that a BYE that comes before the CONFIRM of its session is of no session. The connection that the CONFIRM
// makes ends with the next frame to the peer, which has no session.
func TestByeOvertakesConfirm(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.bye(life, s.theirs)
		s.recv(time.Millisecond) // down, so that the peer's HELLO is answered by what it is told
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 70})
		var h frame.Handshake
		for _, f := range s.recv(time.Millisecond) {
			if got, ok := handshakeIn(&f); ok && got.Kind == frame.HandshakeWelcome {
				h = got
			}
		}
		s.local, s.theirs, s.upTo = 70, h.Sender, h.Sender
		s.bye(70, s.theirs)
		s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 70, Receiver: h.Sender, Check: h.Check})
		s.sessionFrames(time.Millisecond)
		if st := c.Stats(); c.Err() != nil || !st.Ready() {
			t.Fatal(c.Err())
		}
		answer := make(chan error, 1)
		x := write(64, nil, 0, 1)
		x.Done = func(_ *Transaction, err error) { answer <- err }
		if err := c.Post(x); err != nil {
			t.Fatal(err)
		}
		_, sent := s.sessionFrames(time.Millisecond)
		if len(sent) == 0 {
			t.Fatal("nothing was sent")
		}
		s.resets(&sent[0])
		s.recv(time.Microsecond)
		if err := <-answer; !errors.Is(err, ErrPeerRestarted) {
			t.Error(err)
		}
	})
}

// TestEvictedPeerGetsNoBye checks that a peer that is evicted for another one, as it was silent, is not told: it may go on later, and is
// taken for one that comes for the first time.
func TestEvictedPeerGetsNoBye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		sent := 0
		server := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), AcceptAny: true, MaxPeers: 1, GiveUp: time.Second, Trace: byes(&sent)})
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
		if err := conns[0].Err(); err != nil || sent != 0 {
			t.Errorf("it was told, by %d BYEs: %v", sent, err)
		}
		if err := conns[0].Write(t.Context(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("what it writes next: %v", err)
		}
		if err := conns[0].Write(t.Context(), write(64, nil, 0, 1)); err != nil {
			t.Error(err)
		}
	})
}

// TestBothSayBye checks that the BYE of a peer is no frame of a foreign session if this side has said BYE a moment ago and is about to
// close.
func TestBothSayBye(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	c.mu.Lock()
	c.tx.kind.buildDisconnect(&f.e.batch, f.e.now())
	c.mu.Unlock()
	engine{f.e}.Flush()
	of := f.sessions[1]
	h := frame.SessionHeader{Dst: 2, Src: 1, ID: of[0], Tag: session.Tag(session.Epoch(of[1]), session.Epoch(of[0])), Ack: of[1], Control: frame.ControlBye}
	b := make([]byte, 64)
	f.give(b[:frame.PutBye(b, &h, frame.Bye{Sender: of[0], Receiver: of[1]})])
	if st := f.e.Stats(); len(st.RefusedReasons()) > 0 {
		t.Errorf("refused %v", st.RefusedReasons())
	}
}
