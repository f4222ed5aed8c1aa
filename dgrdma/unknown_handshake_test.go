package dgrdma

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestLateHelloMakesNoPeer checks that a copy of a whole conversation, held back by the network or kept by an attacker, does not
// have anything applied twice after the peer was closed.
func TestLateHelloMakesNoPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		mem, _ := NewRegion(4096)
		e, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s := newStranger(t, n, addrA, 1, 2, addrB)
		theirs := s.greet(life)
		again := func() {
			s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: life})
			s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: life, Receiver: theirs, Check: s.check})
			s.send(1, data(life, 0, frame.NotHandshake, 0, nil))
			s.recv(10 * time.Millisecond)
		}
		again()
		if e.Stats().Completions != 1 {
			t.Fatalf("%d completions, want 1", e.Stats().Completions)
		}
		for range 3 {
			for _, c := range e.Conns() {
				c.Close()
			}
			again()
			if st := e.Stats(); st.Peers != 0 || st.Completions != 1 {
				t.Errorf("%d peers and %d completions after a replay, want 0 and 1", st.Peers, st.Completions)
			}
		}
		// The same peer in another session is welcome.
		s.greet(life + 1)
		s.send(1, data(life+1, 0, frame.NotHandshake, 0, nil))
		s.recv(10 * time.Millisecond)
		if st := e.Stats(); st.Peers != 1 || st.Completions != 2 {
			t.Errorf("%d peers and %d completions in a new session, want 1 and 2", st.Peers, st.Completions)
		}
	})
}

// TestForgottenPeerComesBack checks that an endpoint that forgot a peer, which did not hear of it, is as good as one that restarted:
// what was posted before fails, the next write works.
func TestForgottenPeerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		mem := p.region(4096)
		server := p.open(simnet.Addr(3), &Config{ID: 3, Memory: mem, AcceptAny: true})
		defer server.Close()
		c := p.connect(p.a, Peer{ID: 3, Addr: simnet.Addr(3)})
		for i := range 20 {
			err := c.Write(t.Context(), write(64, pattern(i, 8), 0, uint32(i+1)))
			if forgotten := i%2 == 1; forgotten != (err != nil) {
				t.Fatalf("write %d: %v", i, err)
			}
			if i%2 == 0 {
				server.Conns()[0].end()
			}
		}
	})
}

// TestLostHandshakes checks that what peers post arrives and does not fail, once, whatever is lost of their handshakes.
func TestLostHandshakes(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			// One of ten seconds loses fourteen tries in a row now and then.
			n := simnet.New(seed)
			defer n.Close()
			mem, _ := NewRegion(1 << 16)
			server, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true, GiveUp: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			var wg sync.WaitGroup
			for i := range 8 {
				addr := simnet.Addr(uint32(10 + i))
				for _, way := range [][2]transport.Addr{{addr, addrB}, {addrB, addr}} {
					n.Link(way[0], way[1], simnet.Link{Latency: 300 * time.Microsecond, Loss: 0.3, Reorder: 0.2, ReorderBy: 3 * time.Millisecond, Duplicate: 0.1})
				}
				e, err := New(n.Attach(addr, simnet.Config{}), &Config{ID: frame.EndpointID(10 + i), GiveUp: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				c, err := e.Connect(Peer{ID: 2, Addr: addrB})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close() // when all are done: a session that ends may cost the handshake of another peer an attempt
				wg.Go(func() {
					for k := range 3 {
						if err := c.Write(t.Context(), write(uint32(4096*i+1024), pattern(i, 3000), uint32(4096*i), uint32(k+1))); err != nil {
							t.Errorf("seed %d, peer %d, write %d: %v", seed, i, k, err)
						}
					}
				})
			}
			wg.Wait()
			if s := server.Stats(); s.Completions != 24 || s.Restarts != 0 {
				t.Errorf("seed %d: %d completions and %d restarts, want 24 and 0", seed, s.Completions, s.Restarts)
			}
		})
	}
}

// TestPeerThatLeaves checks that a peer that shows that its address is its own, and is never heard again, is sent no more than the
// acknowledgement of that; it is still there for it, under its session (attack A9, SECURITY.md).
func TestPeerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		w.hello(addrA, 1, 5)
		welcome, _ := handshakeIn(&w.frames(time.Millisecond)[0].f)
		confirm := frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: welcome.Sender, Check: welcome.Check}
		w.shake(addrA, 1, confirm)
		if sent := w.frames(24 * time.Hour); len(sent) != 1 || sent[0].session.Control != frame.ControlAck || len(e.Conns()) != 1 {
			t.Errorf("%d frames to a peer that left, want 1: %+v", len(sent), sent)
		}
		// Whatever it says of the session, that one is as it was.
		w.shake(addrA, 1, confirm)
		if sent := w.frames(time.Hour); len(sent) != 1 || sent[0].session.Control != frame.ControlAck {
			t.Errorf("a CONFIRM that comes again is answered with %+v", sent)
		}
		w.sessions = map[peerKey][2]uint32{{ids{2, 1}, addrA}: {5, welcome.Sender}}
		w.message(addrA, 1, 1, frame.Message{Txn: 5, CompletionAddr: 0, CompletionValue: 1, Index: frame.NotHandshake})
		if sent := w.frames(time.Hour); len(sent) != 1 || sent[0].session.Ack != 6 || e.Stats().Completions != 1 {
			t.Errorf("a peer that came back got %+v", sent)
		}
	})
}

// TestSessionThatIsOver checks that a CONFIRM of a local epoch that is over is rejected, and keeps nothing; that the epoch that a
// HELLO is told next is another one; and that its CONFIRM counts.
func TestSessionThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		ask := func(h frame.Handshake) (answer frame.Handshake) {
			w.shake(addrA, 1, h)
			for _, s := range w.frames(time.Second) {
				if h, ok := handshakeIn(&s.f); ok {
					answer = h
				}
			}
			return answer
		}
		never := frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: 6, Check: 7}
		rejected := never
		rejected.Kind = frame.HandshakeReject
		if got := ask(never); got != rejected || e.peers.len() != 0 {
			t.Errorf("who names an epoch that never was gets %+v", got)
		}
		var told []uint32
		for range 3 {
			welcome := ask(frame.Handshake{Kind: frame.HandshakeHello, Sender: 8})
			if slices.Contains(told, welcome.Sender) || welcome.Kind != frame.HandshakeWelcome {
				t.Errorf("after %#x the peer is told %+v", told, welcome)
			}
			told = append(told, welcome.Sender)
			confirm := frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 8, Receiver: welcome.Sender, Check: welcome.Check}
			wrong := confirm
			wrong.Check++
			if got := ask(wrong); got.Kind != frame.HandshakeReject || e.peers.len() != 0 {
				t.Errorf("a CONFIRM with a wrong check gets %+v", got)
			}
			if ask(confirm); e.peers.len() != 1 {
				t.Error("a CONFIRM makes no peer")
			}
			for _, c := range e.Conns() {
				c.Close()
			}
			w.frames(time.Millisecond) // the BYE
			if got := ask(confirm); got.Kind != frame.HandshakeReject || e.peers.len() != 0 {
				t.Errorf("a CONFIRM of a session that is over gets %+v", got)
			}
		}
	})
}

// TestConnectedAfterWelcome checks that a peer that was told a local epoch as an unknown source, and confirms it when we have connected
// to it, has a session at once; and if another process of it was faster, it is rejected.
func TestConnectedAfterWelcome(t *testing.T) {
	for _, faster := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{})
			defer e.Close()
			w.hello(addrA, 1, 5)
			told, _ := handshakeIn(&w.frames(time.Millisecond)[0].f)
			c, err := e.Connect(Peer{ID: 1, Addr: addrA})
			if err != nil {
				t.Fatal(err)
			}
			if faster {
				w.introduce(t, addrA, 1, 6)
			}
			w.frames(60 * time.Millisecond) // between two HELLOs
			w.shake(addrA, 1, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: told.Sender, Check: told.Check})
			sent := w.frames(time.Millisecond)
			if len(sent) != 1 {
				t.Fatalf("%d frames answer", len(sent))
			}
			got, _ := handshakeIn(&sent[0].f)
			if rejected := got.Kind == frame.HandshakeReject; rejected != faster || (sent[0].session.Control == frame.ControlAck) == faster || (c.Stats().Theirs == 5) == faster {
				t.Errorf("answered by %+v, %+v; epoch %d is the peer's", got, sent[0].session, c.Stats().Theirs)
			}
		})
	}
}
