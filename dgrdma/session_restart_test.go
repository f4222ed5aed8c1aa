package dgrdma

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// answersWithin is how long a frame to a peer that started again takes to be answered. Where frames are sealed there are new keys
// first: the peer hints that it cannot open the frame, is asked, and the frame leaves again.
func (p *couple) answersWithin() time.Duration {
	if p.way.sealed {
		return 2*helloFirst + 5*time.Millisecond + 10*coupleLatency
	}
	return 2 * coupleLatency
}

// TestRestartIsKnownInARoundTrip checks that the first write to a peer which started again fails when the first frame is answered, that the
// next one is done in the new process, and that the program hears of one restart. What was done before was done in the old process.
func TestRestartIsKnownInARoundTrip(t *testing.T) {
	inEachWay(t, Config{}, Config{}, func(t *testing.T, p *couple) {
		p.meet()
		old := p.memB
		time.Sleep(10 * time.Second)
		p.restart()
		began := time.Now()
		err := p.toB.Write(t.Context(), write(64, pattern(2, 5000), 0, 2))
		if took := time.Since(began); !errors.Is(err, ErrPeerRestarted) || took > p.answersWithin() {
			t.Errorf("after %v: %v, want a restart after %v at most", took, err, p.answersWithin())
		}
		if old.Load32(0) != 1 || p.memB.Load32(0) != 0 {
			t.Errorf("the words are %d and %d", old.Load32(0), p.memB.Load32(0))
		}
		began = time.Now()
		if err := p.toB.Write(t.Context(), write(64, pattern(3, 5000), 0, 3)); err != nil || p.memB.Load32(0) != 3 {
			t.Errorf("%v, word %d", err, p.memB.Load32(0))
		}
		if took := time.Since(began); took > 10*coupleLatency+2*p.answersWithin() {
			t.Errorf("the next one took %v", took)
		}
		synctest.Wait()
		if st := p.toB.Stats(); st.Restarts != 1 || p.count(PeerRestarted, RefusedNone) != 1 || p.count(PeerDown, RefusedNone) != 0 {
			t.Errorf("%d restarts, %d told", st.Restarts, p.count(PeerRestarted, RefusedNone))
		}
	})
}

// TestRestartWhileIdle checks that a peer which started again and connects, or to which KeepAlive sends a bell, is known though nothing is
// posted.
func TestRestartWhileIdle(t *testing.T) {
	const after = time.Second
	inEachWay(t, Config{KeepAlive: after}, Config{}, func(t *testing.T, p *couple) {
		p.meet()
		p.restart()
		most := after + 2*p.answersWithin() + 10*coupleLatency
		if !p.way.one {
			most = 2*p.answersWithin() + 10*coupleLatency
		}
		time.Sleep(most)
		synctest.Wait()
		if n := p.toB.Stats().Restarts; n != 1 {
			t.Errorf("%d restarts after %v", n, most)
		}
	})
}

// TestRestartOfBoth checks that two endpoints that both start again meet again, where at least one connects.
func TestRestartOfBoth(t *testing.T) {
	inEachWay(t, Config{}, Config{}, func(t *testing.T, p *couple) {
		p.meet()
		kill(p.a)
		p.restart()
		p.a = p.open(p.at[0], &p.cfg[0])
		p.toB = p.connect(p.a, Peer{ID: 2, Addr: p.at[1], Size: 1 << 20})
		p.meet()
		if n := p.memB.Load32(0); n != 1 {
			t.Errorf("word %d", n)
		}
	})
}

// TestRestartFailsFirst checks that what was posted to a process of the peer has failed when the program hears of the next one.
func TestRestartFailsFirst(t *testing.T) {
	for _, resets := range []bool{true, false} { // the peer answers by RESET, or begins a session
		var order []string
		cfg := Config{OnEvent: func(ev Event) { order = append(order, ev.Kind.String()) }}
		withFakePeer(t, cfg, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			order = nil
			x := write(64, []byte("12345678"), 0, 1)
			x.Done = func(_ *Transaction, err error) {
				order = append(order, "done")
				if !errors.Is(err, ErrPeerRestarted) {
					t.Error(err)
				}
			}
			if err := c.Post(x); err != nil {
				t.Fatal(err)
			}
			_, sent := s.sessionFrames(time.Millisecond)
			if resets {
				s.resets(&sent[0])
				s.recv(time.Millisecond)
			}
			s.greet(2 * life)
			s.recv(time.Millisecond)
			if want := []string{"done", PeerRestarted.String()}; !slices.Equal(order, want) {
				t.Errorf("RESET %v: %v, want %v", resets, order, want)
			}
		})
	}
}

// TestToldNextStays checks that a process of the peer may begin the session that it was offered while another one was up, whichever other
// process asks in that time, and however often.
func TestToldNextStays(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		var first frame.Handshake
		for i, epoch := range []uint32{70, 80, 70, 90, 80} {
			s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch})
			shakes, _ := s.sessionFrames(time.Millisecond)
			if len(shakes) != 1 || shakes[0].Kind != frame.HandshakeWelcome || shakes[0].Receiver != epoch || i > 0 && shakes[0].Sender != first.Sender {
				t.Fatalf("%d: answered by %+v, before by %+v", epoch, shakes, first)
			}
			if i == 0 {
				first = shakes[0]
			}
		}
		s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 70, Receiver: first.Sender, Check: first.Check})
		s.recv(time.Millisecond)
		if st := c.Stats(); st.Theirs != 70 || st.Mine != first.Sender || st.Restarts != 1 {
			t.Errorf("epochs %d and %d, %d restarts", st.Mine, st.Theirs, st.Restarts)
		}
	})
}

// TestResetDuringHandshake checks that a session that begins when a Reset came in the midst of a batch is one to both halves.
func TestResetDuringHandshake(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	if err := r.c.reset(0); err != nil {
		t.Fatal(err)
	}
	n := r.c.session
	in := session.Frame{Kind: session.Welcome, Sender: 1 << 21, Receiver: n.tx.m.Local}
	if why := n.acts(r.now, &in, spoken{peerServices: peerServices{servesMemory(), true}}); why != RefusedNone {
		t.Fatal(why)
	}
	h := frame.SessionHeader{Dst: 2, Src: 1, ID: 1<<21 + 1, Tag: tagOfSession(uint32(n.tx.m.Local), 1<<21), Ack: uint32(n.tx.m.Local)}
	b := make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize)
	h.Put(b)
	m := bare(1, 1, 1)
	m.Put(b[frame.SessionHeaderSize:])
	f, err := frame.ParseSession(b)
	if err != nil {
		t.Fatal(err)
	}
	r.e.receiveScratch.session = f
	if why, _ := n.rx.receiveSession(r.now, &r.e.receiveScratch.session); why != RefusedNone || r.c.rx.counters.Completions != 1 {
		t.Errorf("what the peer sends is refused: %v", why)
	}
	if n.tx.m.State != session.Up {
		t.Errorf("%v, want Up", n.tx.m.State)
	}
}

// TestCloseDuringHandshake checks that a connection that was closed while a frame of the handshake was looked at begins no session.
func TestCloseDuringHandshake(t *testing.T) {
	for _, k := range []session.Kind{session.Hello, session.Welcome, session.Confirm} {
		r := newHalfRig(t, 1, Native(), Config{})
		n := r.c.session
		mine := n.tx.m.Local
		r.c.Close()
		in := session.Frame{Kind: k, Sender: 1 << 21, Receiver: mine}
		if why := n.acts(r.now, &in, spoken{}); why != RefusedDown || r.c.Err() != ErrClosed || n.tx.replies.Len() != 0 {
			t.Errorf("%v: refused as %v, the connection is %v; %d answers", k, why, r.c.Err(), n.tx.replies.Len())
		}
	}
}
