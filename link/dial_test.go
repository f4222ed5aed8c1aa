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

// TestAnswers checks that an answer of a listener makes a link, or an error that says why not, and
// nothing that lasts longer than the listener.
func TestAnswers(t *testing.T) {
	yes := letter{kind: letterAccept, from: 1, out: buffers(4, 8), private: []byte("welcome")}
	with := func(change func(*letter)) letter { l := yes; change(&l); return l }
	for _, c := range []struct {
		name   string
		answer letter
		want   error
		says   string
	}{
		{"yes", yes, nil, ""},
		{"without a number", with(func(l *letter) { l.from = 0 }), ErrProtocol, `link: dial port "there" of peer 9 at 02:00:00:00:00:09: it gives the link no number: `},
		{"no buffers", with(func(l *letter) { l.out.Buffers = 0 }), ErrProtocol, "it describes no buffers that could be written to: "},
		{"no", letter{kind: letterRefuse, text: "no \x1b room"}, ErrRefused, ": no ? room"},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, nil, func(t *testing.T, h *Host, _ <-chan *Link, s *fakePeer) {
				var asked letter
				l, err := s.dialed(soon(t), nil, func(open letter) letter {
					asked = open
					c.answer.to, c.answer.attempt = open.from, open.attempt
					return c.answer
				})
				if !says(err, c.want, c.says) || (l == nil) != (err != nil) {
					t.Errorf("%v", err)
				}
				if asked.name != "there" || asked.directions != toListener {
					t.Errorf("asked for %+v", asked)
				}
				if err == nil {
					if l.Port() != "there" || string(l.Private()) != "welcome" || l.number != asked.from {
						t.Errorf("port %q, %q, number %d", l.Port(), l.Private(), l.number)
					}
					l.Abort(soon(t), "")
				}
				s.letter(letter{kind: letterClose, from: c.answer.from, to: asked.from, attempt: asked.attempt})
				s.wait(time.Second)
				nothingLeft(t, h)
			})
		})
	}
}

// TestLateRefusal checks that a refusal that comes when no Dial waits for it any more frees what was
// kept. Until then the memory is for links of other peers only.
func TestLateRefusal(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, _ <-chan *Link, s *fakePeer) {
		no := func(open letter) letter { return letter{kind: letterRefuse, to: open.from, attempt: open.attempt} }
		if _, err := s.dialed(soon(t), nil, no); !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		var asked letter
		_, err := s.dialed(soon(t), nil, func(open letter) letter { asked = open; return letter{kind: letterRefuse, to: open.from} })
		if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if st := h.Stats(); len(st.Links) != 0 || st.Ended != 1 || st.Free != st.Memory {
			t.Errorf("until the peer has answered: %+v", st)
		}
		s.letter(no(asked))
		s.wait(time.Second)
		nothingLeft(t, h)
	})
}

// TestDialAndTheGiveUp checks that Dial without a deadline waits until a silent peer is dead, and with
// one that long, also if it is longer. An end of the context that is no deadline is no missing answer.
func TestDialAndTheGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const giveUp = time.Second
		n := newNet(t, 1)
		cfg := &Config{Endpoint: dgrdma.Config{GiveUp: giveUp}}
		a, b := n.host(1, cfg), n.host(2, cfg)
		p, err := b.Listen("port", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := a.Dial(t.Context(), at(2), "port", nil); !errors.Is(err, ErrNoAnswer) || time.Since(began) != giveUp {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(giveUp/2, cancel)
		if _, err := a.Dial(ctx, at(2), "port", nil); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoAnswer) {
			t.Errorf("canceled: %v", err)
		}
		p.Refuse("so far")
		p.Refuse("")
		ctx, cancel = context.WithTimeout(t.Context(), 5*giveUp)
		defer cancel()
		time.AfterFunc(3*giveUp, func() { p.Accept(ctx) })
		began = time.Now()
		if _, err := a.Dial(ctx, at(2), "port", nil); err != nil || time.Since(began) < 3*giveUp {
			t.Errorf("accepted after 3s: %v after %v", err, time.Since(began))
		}
	})
}

// TestDialUsesTheConnection checks that Dial uses the connection that there is, of that id and at that
// address, and no other. Links that are there stay.
func TestDialUsesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		made := b.serve(t, "port", &Options{Buffers: 4, Size: 8})
		for _, p := range []dgrdma.Peer{{ID: 2, Addr: simnet.Addr(7)}, {ID: 7, Addr: simnet.Addr(2)}} {
			if _, err := a.ep.Connect(p); err != nil {
				t.Fatal(err)
			}
		}
		first, err := a.Dial(soon(t), at(2), "port", nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := a.Dial(soon(t), at(2), "port", nil)
		if err != nil {
			t.Fatal(err)
		}
		if first.Peer() != second.Peer() || len(a.ep.Conns()) != 3 {
			t.Errorf("%d connections", len(a.ep.Conns()))
		}
		for _, l := range []*Link{first, second} {
			if err := echo(soon(t), l, <-made, 1); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestDialsAtOnce checks that several goroutines that dial a new peer at the same moment share one
// connection.
func TestDialsAtOnce(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, seed)
			a, b := n.host(1, nil), n.host(2, nil)
			b.serve(t, "port", nil)
			const dials = 8
			ended, begin := make(chan error, dials), make(chan struct{})
			for range dials {
				go func() {
					<-begin
					_, err := a.Dial(soon(t), at(2), "port", &Options{Buffers: 1, Size: 8})
					ended <- err
				}()
			}
			synctest.Wait()
			close(begin)
			for range dials {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if got := len(a.ep.Conns()); got != 1 {
				t.Errorf("%d connections", got)
			}
		})
	}
}

// TestDialWhatCannotBe checks the errors for what is no endpoint string, for peers that know no
// handshake, and for one peer more than there is room for.
func TestDialWhatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNet(t, 1).host(1, &Config{Endpoint: dgrdma.Config{MaxPeers: 1}})
		if _, err := a.Dial(soon(t), "udp", "port", nil); err == nil {
			t.Error("dialed no address")
		}
		card := at(7) + "?profile=fpga"
		if _, err := a.Dial(soon(t), card, "port", nil); err == nil || err.Error() != "link: dial "+card+": a peer of kind fpga knows no handshake: connect it by Offer or Attach" {
			t.Errorf("a card: %v", err)
		}
		if _, err := a.Dial(soon(t), at(2), "port", nil); !errors.Is(err, dgrdma.ErrTooManyPeers) {
			t.Errorf("a second peer of one: %v", err)
		}
	})
}

// TestDialAfterRestart checks that a request to a life of whose end this side had not heard is sent
// again to the life that is there, but not when the context is done.
func TestDialAfterRestart(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, 1)
			a, b := n.host(1, nil), n.host(2, nil)
			b.serve(t, "port", nil)
			if _, err := a.Dial(soon(t), at(2), "port", nil); err != nil {
				t.Fatal(err)
			}
			n.withoutPeers(2, b.Close)
			n.host(2, nil).serve(t, "port", nil)
			if !late {
				if _, err := a.Dial(soon(t), at(2), "port", nil); err != nil {
					t.Error(err)
				}
				return
			}
			made := a.Stats().Made
			if _, err := a.Dial(&ended{Context: soon(t)}, at(2), "port", nil); !errors.Is(err, dgrdma.ErrPeerRestarted) || !strings.HasPrefix(err.Error(), `link: port "port" of peer 2 at 02:00:00:00:00:02: transactions in flight: the peer restarted`) {
				t.Errorf("with a context that is done during the call: %v", err)
			}
			if got := a.Stats().Made - made; got != 1 {
				t.Errorf("it asked %d times", got)
			}
		})
	}
}

// ended is a context that is done from the second look on, and whose Done channel does not say so.
type ended struct {
	context.Context
	asked bool
}

func (c *ended) Done() <-chan struct{} { return nil }

func (c *ended) Err() error {
	if c.asked {
		return context.Canceled
	}
	c.asked = true
	return nil
}

// TestDialOnASharedEndpoint checks that a connection that was given up begins a new life where the
// endpoint is not the host's own, and that one that stays silent is not closed. On an endpoint of its
// own there is another connection.
func TestDialOnASharedEndpoint(t *testing.T) {
	t.Run("shared", func(t *testing.T) { dialAgain(t, false) })
	t.Run("its own", func(t *testing.T) { dialAgain(t, true) })
}

// dialAgain dials a peer that was given up.
func dialAgain(t *testing.T, own bool) {
	synctest.Test(t, func(t *testing.T) {
		sim := simnet.New(7)
		defer sim.Close()
		a, b := newShared(t, sim, 1), newShared(t, sim, 2)
		defer a.ep.Close()
		defer b.ep.Close()
		b.host.serve(t, "port", &Options{Buffers: 2, Size: 8})
		sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := a.host.Dial(ctx, at(2), "port", nil); !errors.Is(err, dgrdma.ErrPeerDown) || !strings.Contains(err.Error(), "nothing was heard") {
			t.Errorf("%v", err)
		}
		conns := a.ep.Conns()
		if len(conns) != 1 || conns[0].Err() == nil {
			t.Fatalf("%d connections", len(conns))
		}
		sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{})
		synctest.Wait() // no heartbeat is looking at it
		a.host.ownsEndpoint = own
		l, err := a.host.Dial(ctx, at(2), "port", nil)
		if err != nil || (l.Peer() != conns[0]) != own || len(a.ep.Conns()) != 1 {
			t.Errorf("on another connection, or the same, or none: %v", err)
		}
	})
}

// TestAnswerAfterTheEnd checks that a peer that ends a link and agrees to it afterwards has ended it.
func TestAnswerAfterTheEnd(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, _ <-chan *Link, s *fakePeer) {
		for range 20 { // for whichever Dial sees first
			l, err := s.dialed(soon(t), nil, func(open letter) letter {
				over := letter{kind: letterClose, from: 2, to: open.from, attempt: open.attempt}
				yes := letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, out: buffers(4, 8)}
				var parts []part
				for _, l := range []letter{over, yes} {
					b := make([]byte, boxSize)
					n := l.put(b)
					parts = append(parts, s.mailed(b[:n], uint32(n)))
				}
				s.frame(parts...)
				return over
			})
			if l != nil || !errors.Is(err, ErrPeerClosed) {
				t.Fatalf("%v", err)
			}
		}
	})
}

// TestAnswerBeforeTheEnd checks that a listener that accepted, and left before the dialer looked, has
// accepted: what it sent can be received.
func TestAnswerBeforeTheEnd(t *testing.T) {
	_, _, out, _ := pair(t, newNet(t, 1), nil, nil)
	for range 64 { // select would see either first
		l := newLink(out.peer, out.life, "port", 1)
		l.deliverAnswer(nil)
		l.fail(ErrPeerClosed)
		if err := l.awaitAnswer(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20_000 { // and while the dialer looks
		l := newLink(out.peer, out.life, "port", 1)
		go func() {
			l.deliverAnswer(nil)
			l.fail(ErrPeerClosed)
		}()
		if err := l.awaitAnswer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
