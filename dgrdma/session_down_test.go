package dgrdma

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// givenUp runs a test of an endpoint that gave its peer up, in whose session that was.
func givenUp(t *testing.T, test func(t *testing.T, c *Conn, s *fakePeer, events func() []EventKind)) {
	var kinds []EventKind
	cfg := Config{GiveUp: time.Second, OnEvent: func(e Event) {
		if e.Kind != FrameRefused {
			kinds = append(kinds, e.Kind)
		}
	}}
	withFakePeer(t, cfg, Native(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		if err := c.Write(context.Background(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
			t.Fatal(err)
		}
		events := func() []EventKind {
			synctest.Wait()
			got := kinds
			kinds = nil
			return got
		}
		if got := events(); !slices.Equal(got, []EventKind{PeerUp, PeerDown}) {
			t.Fatalf("events %v, want that the peer came and is down", got)
		}
		s.recv(0)
		test(t, c, s, events)
	})
}

// stays fails unless the connection is still down and nothing was told.
func stays(t *testing.T, c *Conn, done <-chan struct{}, events []EventKind) {
	t.Helper()
	if len(events) != 0 || done != c.Done() || !errors.Is(c.Err(), ErrPeerDown) {
		t.Errorf("events %v, %v", events, c.Err())
	}
	if err := c.Post(write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
		t.Errorf("Post: %v", err)
	}
}

// TestForgedHelloRevivesNoPeer checks that a HELLO in the name of a peer that timed out is answered, once, and changes nothing; nor does a
// guess at a CONFIRM (attack A16, SECURITY.md).
func TestForgedHelloRevivesNoPeer(t *testing.T) {
	givenUp(t, func(t *testing.T, c *Conn, s *fakePeer, events func() []EventKind) {
		done := c.Done()
		var welcome frame.Handshake
		for i := range uint32(3) {
			s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 5000 + i})
			shakes, sent := s.sessionFrames(time.Hour)
			if len(shakes) != 1 || len(sent) != 0 || shakes[0].Kind != frame.HandshakeWelcome || shakes[0].Receiver != 5000+i {
				t.Fatalf("%+v and %d frames in the hour after a forged HELLO, want a WELCOME", shakes, len(sent))
			}
			welcome = shakes[0]
		}
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 5002}) // as what it is told has changed within the hour
		if shakes, _ := s.sessionFrames(time.Millisecond); len(shakes) == 1 {
			welcome = shakes[0]
		}
		for _, h := range []frame.Handshake{
			{Sender: 5002, Receiver: welcome.Sender + 1, Check: welcome.Check}, {Sender: 5002, Receiver: welcome.Sender, Check: welcome.Check + 1},
			{Sender: 5001, Receiver: welcome.Sender, Check: welcome.Check}, {Sender: 5002, Receiver: 0, Check: 0},
		} {
			h.Kind = frame.HandshakeConfirm
			s.shake(h)
			if shakes, sent := s.sessionFrames(time.Minute); len(sent) != 0 || len(shakes) > 1 || len(shakes) == 1 && shakes[0].Kind != frame.HandshakeReject {
				t.Errorf("%+v: answered by %+v and %d frames", h, shakes, len(sent))
			}
		}
		stays(t, c, done, events())
	})
}

// TestOldSessionStaysDown checks that what a peer that timed out says in the session that it knows changes nothing, whatever it is; and
// that data, a bell and a CONFIRM are answered, so that it hears that the session is over.
func TestOldSessionStaysDown(t *testing.T) {
	for name, x := range map[string]struct {
		says   func(s *fakePeer)
		answer func(shakes []frame.Handshake, raws [][]byte) bool
	}{
		"data":    {func(s *fakePeer) { s.send(2, data(life, 1, 1, 64, pattern(1, 8))) }, oneReset},
		"bell":    {func(s *fakePeer) { s.bell(2) }, oneReset},
		"CONFIRM": {func(s *fakePeer) { s.confirmAgain() }, oneReject},
		"ACK":     {func(s *fakePeer) { s.acks(1) }, none},
		"BYE":     {func(s *fakePeer) { s.bye(s.local, s.theirs) }, none},
		"WELCOME": {func(s *fakePeer) {
			s.shake(frame.Handshake{Kind: frame.HandshakeWelcome, Sender: s.local, Receiver: s.theirs, Check: s.check})
		}, none},
		"REJECT": {func(s *fakePeer) {
			s.shake(frame.Handshake{Kind: frame.HandshakeReject, Sender: s.theirs, Receiver: s.local})
		}, none},
		"REFUSED": {func(s *fakePeer) { s.shake(refusing(s.theirs)) }, none},
		"RESET": {func(s *fakePeer) {
			h := s.header(s.theirs + 1)
			h.Dst, h.Src, h.Tag = h.Src, h.Dst, tagOfSession(s.local, s.theirs)
			s.resets(&frame.SessionFrame{SessionHeader: h})
		}, none},
	} {
		t.Run(name, func(t *testing.T) {
			givenUp(t, func(t *testing.T, c *Conn, s *fakePeer, events func() []EventKind) {
				done := c.Done()
				x.says(s)
				time.Sleep(time.Minute)
				synctest.Wait()
				s.mu.Lock()
				raws := slices.Clone(s.raws)
				s.mu.Unlock()
				if shakes, _ := s.sessionFrames(0); !x.answer(shakes, raws) {
					t.Errorf("answered by %+v, %d frames", shakes, len(raws))
				}
				stays(t, c, done, events())
			})
		})
	}
}

func oneReset(_ []frame.Handshake, raws [][]byte) bool {
	if len(raws) != 1 || !frame.IsSession(raws[0]) {
		return false
	}
	f, err := frame.ParseSession(raws[0])
	return err == nil && f.Control == frame.ControlReset
}

func oneReject(shakes []frame.Handshake, raws [][]byte) bool {
	return len(raws) == 1 && len(shakes) == 1 && shakes[0].Kind == frame.HandshakeReject
}

func none(_ []frame.Handshake, raws [][]byte) bool { return len(raws) == 0 }

// TestPeerReturns checks that a peer which begins a session after it timed out is there again, and that the program that saw it go down
// sees that (attack A16, SECURITY.md), though an answer was lost and other sources spoke in between.
func TestPeerReturns(t *testing.T) {
	givenUp(t, func(t *testing.T, c *Conn, s *fakePeer, events func() []EventKind) {
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 6000})
		s.recv(time.Second) // lost
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 5000})
		s.recv(time.Second)
		s.greet(6000)
		s.recv(10 * time.Millisecond)
		if got := events(); !slices.Equal(got, []EventKind{PeerRestarted}) {
			t.Errorf("events %v, want that the peer restarted", got)
		}
		if st := c.Stats(); st.Down || st.Theirs != 6000 || st.Mine != s.theirs || c.Err() != nil {
			t.Errorf("down %v, epoch %d, ours %d; the peer heard of %d", st.Down, st.Theirs, st.Mine, s.theirs)
		}
		s.send(1, data(6000, 1, 1, 64, pattern(1, 8)))
		if !acked(s.recv(100*time.Millisecond), 1) || c.Stats().Completions != 1 {
			t.Errorf("what it wrote was not applied: %v", c.Stats().Refused)
		}
	})
}

// TestBothTimedOut checks that, when both sides have given each other up, Reset on one of them is enough, and that the
// program of the other one hears of it.
func TestBothTimedOut(t *testing.T) {
	inEachWay(t, Config{GiveUp: time.Second}, Config{GiveUp: time.Second}, func(t *testing.T, p *couple) {
		toA := p.meet()
		p.link(simnet.Link{Down: true}, simnet.Link{Down: true})
		for _, c := range []*Conn{p.toB, toA} {
			if err := c.Write(t.Context(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
				t.Fatal(err)
			}
		}
		p.link(simnet.Link{Latency: coupleLatency}, simnet.Link{Latency: coupleLatency})
		time.Sleep(time.Minute)
		if p.toB.Err() == nil || toA.Err() == nil {
			t.Error("up again without Reset")
		}
		before := p.count(PeerRestarted, RefusedNone)
		p.toB.Reset(0)
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 2)); err != nil {
			t.Error(err)
		}
		if p.way.one {
			toA = p.b.Conns()[0] // it may have been learned again
		}
		if err := toA.Write(t.Context(), write(64, nil, 0, 3)); err != nil {
			t.Error(err)
		}
		if p.memB.Load32(0) != 2 || p.memA.Load32(0) != 3 {
			t.Errorf("words %d and %d", p.memB.Load32(0), p.memA.Load32(0))
		}
		if got := p.count(PeerRestarted, RefusedNone) - before; got != 1 {
			t.Errorf("%d restarts were told", got)
		}
	})
}

// TestTimedOutPeerHears checks that a peer that timed out while it stood still, or was away, hears of it as soon as it says something, and
// not when this side times out for it: then there is a session again.
func TestTimedOutPeerHears(t *testing.T) {
	for name, says := range map[string]func(t *testing.T, c *Conn){
		"data": func(t *testing.T, c *Conn) {
			began := time.Now()
			if err := c.Write(t.Context(), write(0, pattern(1, 8), 64, 1)); !errors.Is(err, ErrPeerRestarted) || time.Since(began) > 2*coupleLatency {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		},
		"a bell": func(t *testing.T, c *Conn) {
			time.Sleep(5*time.Second + time.Second)
			if n := c.Stats().Restarts; n != 1 {
				t.Errorf("%d restarts", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEachWay(t, Config{GiveUp: time.Second}, Config{GiveUp: time.Minute, KeepAlive: 5 * time.Second}, func(t *testing.T, p *couple) {
				toA := p.meet()
				if p.way.one {
					p.connect(p.b, Peer{ID: 1, Addr: p.at[0], Size: 1 << 20})
				}
				p.link(simnet.Link{Down: true}, simnet.Link{Down: true})
				if err := p.toB.Write(t.Context(), write(0, pattern(2, 8), 64, 2)); !errors.Is(err, ErrPeerDown) {
					t.Fatal(err)
				}
				p.link(simnet.Link{Latency: coupleLatency}, simnet.Link{Latency: coupleLatency})
				sent := p.b.Stats().FramesSent
				says(t, toA)
				if err := toA.Write(t.Context(), write(0, pattern(3, 8), 64, 3)); err != nil || p.memA.Load32(64) != 3 {
					t.Errorf("%v, the word is %d", err, p.memA.Load32(64))
				}
				if n := p.b.Stats().FramesSent - sent; n > 20 {
					t.Errorf("%d frames", n)
				}
				if err := p.toB.Err(); err != nil {
					t.Errorf("the one that gave up: %v", err)
				}
			})
		})
	}
}
