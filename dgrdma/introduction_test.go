package dgrdma

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// asksAny returns a HELLO for whoever is there, which asks for a WELCOME.
func asksAny(dst frame.EndpointID, epoch uint32, listed int) []byte {
	b := make([]byte, frame.ListedSize)
	h := frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch}
	var list frame.Services
	for i := range listed {
		list.Add(serviceAt(fmt.Sprintf("s%d", i), 0))
	}
	if h.PutWith(b, dst, 1, &list); list.HasRoom() {
		frame.PutIdentity(b[frame.HandshakeSize:], frame.Refusal{})
	}
	return b
}

// TestWelcomeOfWhoeverIsThere checks that a HELLO for whoever is there is answered over UDP by a WELCOME that says who it is, where one to the endpoint's id would be
// welcome; otherwise as one that does not ask for that; that no answer is longer than what was asked; and that nothing is kept of who asks.
func TestWelcomeOfWhoeverIsThere(t *testing.T) {
	stranger, peer := udpAddr("10.0.0.3:1"), udpAddr("10.0.0.4:1")
	for name, x := range map[string]struct {
		from     transport.Addr
		question []byte
		cfg      Config
		quiet    bool // it accepts no unknown sources
		services int
		kind     frame.HandshakeKind // of the answer
	}{
		"a stranger":                      {from: stranger, question: asksAny(0, 5, 0), kind: frame.HandshakeWelcome},
		"with many services":              {from: stranger, question: asksAny(0, 5, 7), kind: frame.HandshakeWelcome},
		"with as many as can be":          {from: stranger, question: asksAny(0, 5, 8), kind: frame.HandshakeRefused},
		"to one with as many as can be":   {from: stranger, question: asksAny(0, 5, 0), services: 7, kind: frame.HandshakeRefused},
		"short":                           {from: stranger, question: asksAny(0, 5, 0)[:frame.ListedSize-1], kind: frame.HandshakeRefused},
		"to another id":                   {from: stranger, question: asksAny(7, 5, 0), kind: frame.HandshakeRefused},
		"to one that accepts nobody":      {from: stranger, question: asksAny(0, 5, 0), quiet: true},
		"of its peer":                     {from: peer, question: asksAny(0, 5, 0), quiet: true, kind: frame.HandshakeWelcome},
		"of its peer's session":           {from: peer, question: asksAny(0, 4, 0), quiet: true, kind: frame.HandshakeRefused},
		"to one whose peers are its last": {from: stranger, question: asksAny(0, 5, 0), cfg: Config{MaxPeers: 1}, kind: frame.HandshakeRefused},
		"over Ethernet":                   {from: addrA, question: asksAny(0, 5, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, x.cfg)
				defer e.Close()
				if x.from == peer {
					w.introduce(t, peer, 1, 4)
				} else if x.cfg.MaxPeers > 0 {
					if _, err := e.Connect(Peer{ID: 9, Addr: addrB}); err != nil {
						t.Fatal(err)
					}
				}
				for i := range x.services {
					if _, err := e.Serve(newShelf(fmt.Sprintf("s%d", i), MailSize)); err != nil {
						t.Fatal(err)
					}
				}
				e.AcceptAny(!x.quiet)
				w.frames(time.Hour)
				before := e.Stats().Peers
				w.give(x.from, x.question)
				w.give(x.from, x.question) // in one batch, or the next one
				sent := slices.DeleteFunc(w.frames(time.Second), func(s sentTo) bool { return s.to != x.from })
				if len(sent) > 2 || (len(sent) > 0) != (x.kind != frame.NoHandshake) {
					t.Fatalf("%d frames: %+v", len(sent), sent)
				}
				for _, s := range sent {
					h, _ := handshakeIn(&s.f)
					is, identified := s.f.Identity()
					if h.Kind != x.kind || s.n > len(x.question) || identified != (x.kind == frame.HandshakeWelcome) || identified && (is.ID != 2 || is.Size < 4096 || h.Receiver != 5 || s.f.Src != 0) {
						t.Errorf("%v of %+v, %v, in %d bytes", h, is, identified, s.n)
					}
				}
				if n := e.Stats().Peers; n != before {
					t.Errorf("%d peers, %d before", n, before)
				}
			})
		})
	}
}

// TestIntroductionCounts checks that a WELCOME to who asked for whoever is there counts for a second, once, and where nothing has ended since; and that few are kept.
func TestIntroductionCounts(t *testing.T) {
	const trip = 20 * time.Millisecond
	for _, x := range []struct {
		name     string
		services int // of the one that is dialed
		between  func(s *setupPath)
		again    bool // the connection asks again
	}{
		{name: "at once"},
		{name: "soon", between: func(*setupPath) { time.Sleep(introductionCounts / 2) }},
		{name: "late", between: func(*setupPath) { time.Sleep(introductionCounts + time.Millisecond) }, again: true},
		{name: "by REFUSED", services: 7, again: true},
		{name: "what this endpoint tells has changed", between: func(s *setupPath) {
			c := s.connect(s.a, Peer{ID: 9, Addr: asked})
			c.Close()
		}, again: true},
		{name: "another one was connected since", between: func(s *setupPath) {
			s.connect(s.a, Peer{ID: 2, Addr: asked}).Close()
		}, again: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetupPath(t, trip, Config{}, Config{})
				defer s.end()
				for i := range x.services {
					if _, err := s.b.Serve(newShelf(fmt.Sprintf("s%d", i), MailSize)); err != nil {
						t.Fatal(err)
					}
				}
				p, err := s.a.Find(t.Context(), Peer{Addr: asked})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * trip) // what else is under way
				s.mu.Lock()
				hellos := s.left["HELLO"]
				s.mu.Unlock()
				if x.between != nil {
					x.between(s)
				}
				c := s.connect(s.a, p)
				for i := range 2 {
					if err := c.Write(t.Context(), write(64, []byte{1}, 0, uint32(1+i))); err != nil {
						t.Error(err)
					}
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if (s.left["HELLO"] > hellos) != x.again {
					t.Errorf("%d HELLOs, %d before", s.left["HELLO"], hellos)
				}
			})
		})
	}
	e := new(Endpoint)
	for i := range 5 * mostIntroductions {
		e.keepIntroduction(&introduction{of: peerKey{ids{1, frame.EndpointID(1 + i)}, asked}})
	}
	if n := len(e.introductions); n != mostIntroductions || e.takeIntroduction(0, peerKey{ids{1, 5 * mostIntroductions}, asked}) == nil {
		t.Errorf("%d are kept", n)
	}
}

// TestPeerRestartsBeforeItIsConfirmed checks that a peer that started again after its WELCOME, under the same id, is met all the same, and that no data that was
// written is reported done that it does not have.
func TestPeerRestartsBeforeItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetupPath(t, 20*time.Millisecond, Config{}, Config{})
		defer s.end()
		p, err := s.a.Find(t.Context(), Peer{Addr: asked})
		if err != nil {
			t.Fatal(err)
		}
		s.b.Close()
		memory := s.region(1 << 20)
		s.b = s.open(asked, &Config{ID: 2, AcceptAny: true, Memory: memory})
		c := s.connect(s.a, p)
		if err := c.Write(t.Context(), write(64, []byte{1}, 0, 1)); !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("%v, want %v", err, ErrPeerRestarted)
		}
		if err := c.Write(t.Context(), write(64, []byte{1}, 0, 2)); err != nil || memory.Load32(0) != 2 {
			t.Errorf("%v, memory has %d", err, memory.Load32(0))
		}
	})
}

// TestBothDialByAddress checks that one session comes of two endpoints that dial each other at once by their addresses.
func TestBothDialByAddress(t *testing.T) {
	for _, later := range []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := newSetupPath(t, 20*time.Millisecond, Config{AcceptAny: true, Memory: (&pair{t: t}).region(1 << 20)}, Config{})
			defer s.end()
			var group sync.WaitGroup
			for i, e := range []*Endpoint{s.a, s.b} {
				group.Go(func() {
					time.Sleep(time.Duration(i) * later)
					p, err := e.Find(t.Context(), Peer{Addr: []transport.Addr{asked, asking}[i]})
					if err != nil {
						t.Error(err)
						return
					}
					c, err := e.Connect(p)
					if err != nil {
						t.Error(err)
						return
					}
					if err := c.Write(t.Context(), write(64, []byte{1}, 0, 1)); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if a, b := s.a.Conns(), s.b.Conns(); len(a) != 1 || len(b) != 1 || a[0].Stats().Mine != b[0].Stats().Theirs {
				t.Errorf("%v later: %v and %v", later, a, b)
			}
		})
	}
}
