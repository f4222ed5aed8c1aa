package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// afterDeath has endpoint 1 meet endpoint 2, which dies without a word, and fails unless 1 notices
// that, whatever comes of it since then: then runs after the death, and is told the epochs of the session, 1's first.
func afterDeath(t *testing.T, cfg Config, then func(w *findWorld, mine, theirs uint32)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		memory, _ := NewRegion(4096)
		cfg.Memory, cfg.KeepAlive, cfg.GiveUp = memory, 3*time.Second, 2*time.Second
		w := newFindWorld(t, &cfg, &Config{AcceptAny: true})
		defer w.end()
		c := w.connect(w.a, Peer{ID: 2, Addr: asked})
		time.Sleep(time.Second)
		st := c.Stats()
		if st.Theirs == 0 {
			t.Fatalf("they do not know each other: %+v", st)
		}
		kill(w.b)
		then(w, st.Mine, st.Theirs)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.WaitFor(ctx, 64, 1)
		if took := time.Since(began); !errors.Is(err, ErrPeerDown) || errors.Is(err, ErrPeerClosed) || took > cfg.KeepAlive+cfg.GiveUp+helloMost {
			st := c.Stats()
			t.Errorf("after %v: %v; it is down %v, refused %v", took, err, st.Down, st.RefusedReasons())
		}
	})
}

// every has a frame come from a dead peer's address each second for a minute.
func (w *findWorld) every(b []byte) {
	for i := range 60 {
		time.AfterFunc(time.Duration(i)*time.Second, func() { w.net.Inject(asked, asking, b) })
	}
}

// foreignFrames are frames that endpoint 2 sends to 1, and that are of no session of those epochs, 1's first.
func foreignFrames(mine, theirs uint32) map[string][]byte {
	all := map[string][]byte{}
	s := fakePeer{id: 2, dst: 1, local: theirs, theirs: mine}
	of := func(name string, tag uint32, control frame.Control, body int) []byte {
		h := s.header(theirs + 1)
		h.Tag, h.Control = tag, control
		b := make([]byte, frame.SessionHeaderSize+body)
		h.Put(b)
		all[name] = b
		return b
	}
	wrong := tagOfSession(mine, theirs) + 1
	m := frame.Message{Txn: 7, CompletionAddr: 64, CompletionValue: 1}
	m.Put(of("data of another session", wrong, frame.NoControl, frame.MessageHeaderSize)[frame.SessionHeaderSize:])
	of("a bell of another session", wrong, frame.ControlBell, 1)
	h := s.header(mine)
	h.Tag = wrong
	b := make([]byte, 64)
	all["an ACK of another session"] = b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, nil)]
	h = s.header(mine + 1)
	h.Tag = wrong
	b = make([]byte, 64)
	all["a BYE of another session"] = b[:frame.PutBye(b, &h, frame.Bye{Sender: theirs, Receiver: mine + 1})]
	h = frame.SessionHeader{Dst: 2, Src: 1, ID: mine + 1, Tag: wrong, Ack: theirs}
	b = make([]byte, frame.SessionHeaderSize+1)
	frame.PutReset(b, h)
	all["a RESET of another session"] = b
	for name, h := range map[string]frame.Handshake{
		"a HELLO":                      {Kind: frame.HandshakeHello, Sender: 7},
		"a HELLO of the same epoch":    {Kind: frame.HandshakeHello, Sender: theirs},
		"a WELCOME":                    {Kind: frame.HandshakeWelcome, Sender: 7, Receiver: mine},
		"a CONFIRM of another session": {Kind: frame.HandshakeConfirm, Sender: theirs, Receiver: mine + 1, Check: 9},
		"a CONFIRM to the present one": {Kind: frame.HandshakeConfirm, Sender: theirs + 1, Receiver: mine, Check: 9},
		"a REJECT of another session":  {Kind: frame.HandshakeReject, Sender: mine, Receiver: theirs + 1},
		"a REFUSED":                    refusing(mine + 1),
	} {
		b := make([]byte, frame.ListedSize)
		h.Put(b, 1, 2)
		all[name] = b
	}
	between := frame.Header{Dst: 1, Src: 2}
	all["a REFUSED that refers"] = referring(between, refusing(mine+1), frame.Refusal{ID: 5, Size: 64})
	plain := make([]byte, frame.HeaderSize)
	between.Put(plain)
	all["a frame of another kind"] = plain
	between.Flags, between.Seq = frame.FlagMessages, 7
	plain = make([]byte, frame.HandshakeSize)
	between.Put(plain)
	m.Put(plain[frame.HeaderSize:])
	all["data of another kind"] = plain
	return all
}

// TestWhatIsRefusedIsNoSignOfLife checks that a peer that died times out, though frames come under its ids and from its address that are of
// no session with it (attack A26, SECURITY.md).
func TestWhatIsRefusedIsNoSignOfLife(t *testing.T) {
	for name := range foreignFrames(1, 2) {
		t.Run(name, func(t *testing.T) {
			afterDeath(t, Config{}, func(w *findWorld, mine, theirs uint32) { w.every(foreignFrames(mine, theirs)[name]) })
		})
	}
}

// TestAddressOfAnotherSince checks that a peer that died times out, though an endpoint with another id has its address since, and answers
// each question.
func TestAddressOfAnotherSince(t *testing.T) {
	afterDeath(t, Config{}, func(w *findWorld, _, _ uint32) { w.b = w.open(asked, &Config{ID: 3, AcceptAny: true}) })
}

// TestKeptSessionEnds checks that a connection that is to stay with one process of its peer ends when another one answers its bell.
func TestKeptSessionEnds(t *testing.T) {
	const after = time.Second
	inEachWay(t, Config{KeepAlive: after, KeepOldLife: true}, Config{}, func(t *testing.T, p *couple) {
		p.meet()
		p.restart()
		time.Sleep(after + 2*p.answersWithin())
		if err := p.toB.Err(); !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("%v after %v", err, after+2*p.answersWithin())
		}
		time.Sleep(time.Minute)
		if st := p.toB.Stats(); !st.Down || st.Restarts != 0 {
			t.Errorf("down %v, %d restarts", st.Down, st.Restarts)
		}
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		p.meet()
	})
}

// TestPlacesOfTheDead checks that learned peers that died make room for others of their host, though frames
// come in their names (attack A26, SECURITY.md).
func TestPlacesOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, _ := NewRegion(64) // for what is posted to it, before or after it says what it serves
		w := newFindWorld(t, &Config{AcceptAny: true, PeersPerHost: 2, GiveUp: time.Second, Memory: memory}, nil)
		defer w.end()
		host := [...]string{"10.0.0.2:1001", "10.0.0.2:1002", "10.0.0.2:1003"}
		for _, at := range host[:2] {
			e := w.open(udpAddr(at), &Config{ID: 5})
			w.connect(e, Peer{ID: 1, Addr: asking})
			time.Sleep(time.Second)
			kill(e)
		}
		bell := make([]byte, frame.SessionHeaderSize+1)
		h := frame.SessionHeader{Dst: 1, Src: 5, Control: frame.ControlBell, Tag: 7}
		h.Put(bell)
		for range 60 {
			for _, at := range host[:2] {
				w.net.Inject(udpAddr(at), asking, bell)
			}
			time.Sleep(time.Second)
		}
		e := w.open(udpAddr(host[2]), &Config{ID: 5, GiveUp: 5 * time.Second})
		defer e.Close()
		if err := w.connect(e, Peer{ID: 1, Addr: asking, Size: 64}).Post(write(0, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if st := w.a.Stats(); st.Restarts != 0 || st.Peers != 2 || w.a.peers.find(peerKey{ids{1, 5}, udpAddr(host[2])}) == nil {
			t.Errorf("no room for it among %d; refused %v", st.Peers, st.RefusedReasons())
		}
	})
}

// TestSignsOfLife checks that a peer is not asked whether it is there that sends anything in the session, or confirms it again.
func TestSignsOfLife(t *testing.T) {
	const after = time.Second
	for name, says := range map[string]func(s *fakePeer, i int){
		"CONFIRM":          func(s *fakePeer, _ int) { s.confirmAgain() },
		"ACK":              func(s *fakePeer, _ int) { s.acks(0) },
		"bell":             func(s *fakePeer, i int) { s.bell(frame.Seq(1 + i)) },
		"data":             func(s *fakePeer, i int) { s.send(frame.Seq(1+i), data(life+uint32(i), 1, 1, 64, pattern(1, 8))) },
		"data that it has": func(s *fakePeer, _ int) { s.send(1, data(life, 1, 1, 64, pattern(1, 8))) },
		"PROBED": func(s *fakePeer, _ int) {
			b := make([]byte, 64)
			h := s.header(0)
			h.Control = frame.ControlProbed
			h.Put(b)
			s.raw(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withFakePeer(t, Config{KeepAlive: after}, Native(), func(t *testing.T, _ *Endpoint, _ *Conn, s *fakePeer) {
				for i := range 5 {
					says(s, i)
					if _, sent := s.sessionFrames(after - time.Millisecond); len(sent) > 0 {
						t.Fatalf("asked by %+v after frame %d", sent[0].SessionHeader, i)
					}
				}
				if _, sent := s.sessionFrames(2 * time.Millisecond); len(sent) == 0 || sent[0].Control != frame.ControlBell {
					t.Errorf("not asked when it is silent: %+v", sent)
				}
			})
		})
	}
}
