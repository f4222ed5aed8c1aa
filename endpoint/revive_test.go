package endpoint

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// givenUp runs a test of an endpoint that gave its peer up.
func givenUp(t *testing.T, test func(t *testing.T, c *Conn, s *stranger, events func() []EventKind)) {
	var kinds []EventKind
	cfg := Config{GiveUp: time.Second, OnEvent: func(e Event) { kinds = append(kinds, e.Kind) }}
	withStranger(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *stranger) {
		if err := c.Write(context.Background(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
			t.Fatal(err)
		}
		events := func() []EventKind {
			synctest.Wait()
			got := kinds
			kinds = nil
			return got
		}
		if got := events(); len(got) != 2 || got[1] != PeerDown {
			t.Fatalf("events %v, want peer down in the end", got)
		}
		s.recv(0)
		test(t, c, s, events)
	})
}

func (s *stranger) hello(h frame.Hello) { s.t.Helper(); s.send(1, msg{Message: h.Message()}) }

// TestForgedHelloRevivesNobody: a hello in the name of a peer that was given up is
// answered, once, and changes nothing (attack A16, SECURITY.md).
func TestForgedHelloRevivesNobody(t *testing.T) {
	givenUp(t, func(t *testing.T, c *Conn, s *stranger, events func() []EventKind) {
		done := c.Done()
		for i := range uint32(3) {
			s.hello(frame.Hello{Life: 5000 + i})
			if got := s.recv(time.Hour); len(got) != 1 {
				t.Errorf("%d frames in the hour after a forged hello, want 1", len(got))
			}
		}
		s.hello(frame.Hello{Life: 5002, Peer: 77, Tells: true}) // a guess at what was answered
		if got := events(); len(got) != 0 {
			t.Errorf("events %v", got)
		}
		if err := c.Post(write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) || !errors.Is(c.Err(), ErrPeerDown) || done != c.Done() {
			t.Errorf("Post: %v, Err: %v; want that the peer is down", err, c.Err())
		}
	})
}

// TestSameLifeStaysDown: what a peer that was given up says in the life we knew is
// refused: its ids are not what ours are any more. It is told so.
func TestSameLifeStaysDown(t *testing.T) {
	givenUp(t, func(t *testing.T, c *Conn, s *stranger, events func() []EventKind) {
		for _, h := range []frame.Hello{
			{Life: life}, {Life: life, Tells: true}, {Life: life, Peer: s.theirs}, {Life: life, Peer: s.theirs, Tells: true},
		} {
			before := c.Stats().RefusedBy(RefusedDown)
			s.hello(h)
			goodbyes := 0
			if h.Peer == s.theirs { // who only knows that life may be anybody
				goodbyes = 1
			}
			if got := s.recv(time.Minute); !s.goodbyes(got, goodbyes) {
				t.Errorf("%+v was answered with %d frames, want %d goodbyes", h, len(got), goodbyes)
			}
			if st := c.Stats(); !st.Down || st.RefusedBy(RefusedDown) != before+1 {
				t.Errorf("%+v: down %v, refused %v", h, st.Down, st.RefusedReasons())
			}
		}
		if got := events(); len(got) != 0 {
			t.Errorf("events %v", got)
		}
	})
}

// TestPeerReturns: who completes the introduction anew is there again, and the
// application that saw it go down sees that (attack A16, SECURITY.md), though an
// answer was lost and others spoke in between.
func TestPeerReturns(t *testing.T) {
	givenUp(t, func(t *testing.T, c *Conn, s *stranger, events func() []EventKind) {
		s.hello(frame.Hello{Life: 6000})
		s.recv(time.Second) // lost
		s.hello(frame.Hello{Life: 5000})
		s.recv(time.Second)
		s.greet(6000)
		s.recv(10 * time.Millisecond)
		if got := events(); len(got) != 1 || got[0] != PeerRestarted {
			t.Errorf("events %v, want that the peer restarted", got)
		}
		if st := c.Stats(); st.Down || st.Theirs != 6000 || st.Mine != s.theirs || c.Err() != nil {
			t.Errorf("down %v, life %d, ours %d; the peer heard of %d", st.Down, st.Theirs, st.Mine, s.theirs)
		}
		s.send(2, data(6000, 1, 1, 64, pattern(1, 8)))
		if !acked(s.recv(100*time.Millisecond), 2) || c.Stats().Completions != 1 {
			t.Errorf("what it wrote was not applied: %v", c.Stats().Refused)
		}
	})
}

// TestBothGaveUp: when both sides have given each other up, Reset on one of them is
// enough, and the other's application hears of it.
func TestBothGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{GiveUp: time.Second}, b: Config{GiveUp: time.Second}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		for _, down := range []bool{true, false} {
			p.net.Link(addrA, addrB, simnet.Link{Down: down})
			p.net.Link(addrB, addrA, simnet.Link{Down: down})
			if down {
				for _, c := range []*Conn{p.toA, p.toB} {
					if err := c.Write(context.Background(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
						t.Fatal(err)
					}
				}
			}
		}
		time.Sleep(time.Minute)
		if p.toA.Err() == nil || p.toB.Err() == nil {
			t.Error("up again without Reset")
		}
		before := p.count(PeerRestarted, RefusedNone)
		p.toB.Reset(0)
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 2)); err != nil {
			t.Error(err)
		}
		if err := p.toA.Write(context.Background(), write(64, nil, 0, 3)); err != nil {
			t.Error(err)
		}
		if got := p.count(PeerRestarted, RefusedNone) - before; got != 1 || p.memB.Load32(0) != 2 || p.memA.Load32(0) != 3 {
			t.Errorf("%d restarts were told, words %d and %d", got, p.memB.Load32(0), p.memA.Load32(0))
		}
	})
}
