package link

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestClosedPortRefuses checks that a dialer that waits at a port is refused when the port is closed,
// and goes on waiting when an empty refusal is set.
func TestClosedPortRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		p, err := b.Listen("port", nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { _, err := a.Dial(soon(t), at(2), "port", nil); ended <- err }()
		synctest.Wait()
		p.Refuse("")
		synctest.Wait()
		if s := b.Stats(); len(ended) != 0 || s.Ports[0].Waiting != 1 {
			t.Errorf("a refusal was lifted: %+v", s.Ports)
		}
		p.Close()
		if err := <-ended; !says(err, ErrRefused, ": the port was closed") {
			t.Error(err)
		}
		if _, err := a.Dial(soon(t), at(2), "port", nil); !says(err, ErrRefused, `no port "port" here`) {
			t.Error(err)
		}
	})
}

// TestNoPortIsTold checks that a dialer knows by a code, and by no words of a listener, that the host does not listen on a port (L1).
func TestNoPortIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		const words = `in the harbour: no port "none" here: check its name, and that this host listens on it by now`
		vetted, err := b.Listen("vetted", &Options{Filter: func(dgrdma.PeerName, []byte) error { return errors.New(words) }})
		if err != nil {
			t.Fatal(err)
		}
		go vetted.Accept(soon(t))
		refusing, err := b.Listen("refusing", nil)
		if err != nil {
			t.Fatal(err)
		}
		refusing.Refuse(words)
		for port, none := range map[string]bool{"none": true, "vetted": false, "refusing": false} {
			_, err := a.Dial(soon(t), at(2), port, nil)
			if !says(err, ErrRefused, `refused by the peer: `) || !says(err, ErrRefused, `no port "none" here`) || errors.Is(err, ErrNoPort) != none {
				t.Errorf("port %s: %v, ErrNoPort: %v", port, err, errors.Is(err, ErrNoPort))
			}
		}
	})
}

// TestDialsThatMakeNoLink checks that a pending dial that cannot be accepted when Accept takes it is
// refused, with the reason.
func TestDialsThatMakeNoLink(t *testing.T) {
	withFakePeer(t, &Options{Directions: Both, Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		if l := s.dial(1, "port", toListener, half{}, half{}); l.kind != letterAccept {
			t.Fatalf("%+v", l)
		}
		for _, c := range []struct {
			open letter
			says string
		}{
			{letter{from: 2, attempt: 1, directions: toListener}, "the attempt has a link already"},
			{letter{from: 3, attempt: 3, directions: toDialer}, "the buffers offered cannot be written to"},
			{letter{from: 4, attempt: 4}, `port "port" is not for that direction: check Options.Directions at both ends`},
		} {
			c.open.kind, c.open.name = letterOpen, "port"
			s.letter(c.open)
			if got := s.mail(); len(got) != 1 || got[0].kind != letterRefuse || got[0].to != c.open.from || got[0].attempt != c.open.attempt || got[0].text != c.says {
				t.Errorf("%+v, want %q", got, c.says)
			}
		}
		if n := len(h.Stats().Links); n != 1 {
			t.Errorf("%d links", n)
		}
	})
}

// TestLettersBeforeALink checks that so many letters may wait for a peer that dials, and no more.
func TestLettersBeforeALink(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		p := h.peerOf(h.ep.Conns()[0])
		s.setMute(true)
		for range 4095 {
			p.send(p.conn.Life(), letter{kind: letterClose, from: 1})
		}
		for i := range uint32(2) {
			s.letter(letter{kind: letterOpen, from: i + 1, attempt: uint64(i) + 1, directions: toListener, name: "port"})
		}
		if n := len(h.Stats().Links); n != 1 {
			t.Errorf("%d links", n)
		}
		s.setMute(false)
		var answers []letter
		for range 100 {
			for _, l := range s.mail() {
				if l.kind != letterClose {
					answers = append(answers, l)
				}
			}
		}
		if len(answers) != 2 || answers[0].kind != letterAccept || answers[1].kind != letterRefuse || answers[1].text != "4096 letters to this peer wait here" {
			t.Errorf("%+v", answers)
		}
	})
}

// TestAnswersToNoDial checks that a listener that accepts what no Dial waits for is told that the link
// is over. A listener that refuses it is not: it has nothing to end.
func TestAnswersToNoDial(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		s.letter(letter{kind: letterRefuse, from: 5, to: 77, attempt: 6, text: "no"})
		if got := s.mail(); len(got) != 0 {
			t.Errorf("a refusal is answered by %+v", got)
		}
		s.letter(letter{kind: letterAccept, from: 5, to: 77, attempt: 6})
		if got := s.mail(); len(got) != 1 || got[0].kind != letterClose || got[0].to != 5 || got[0].attempt != 6 {
			t.Errorf("an acceptance is answered by %+v", got)
		}
	})
}

// TestAttemptOfBothSides checks that a peer that dials under the attempt of a link that it was dialed
// by has two links of it, each of which ends by itself.
func TestAttemptOfBothSides(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		var attempt uint64
		dialed, err := s.dialed(soon(t), nil, func(open letter) letter {
			attempt = open.attempt
			return letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, out: buffers(4, 8)}
		})
		if err != nil {
			t.Fatal(err)
		}
		s.letter(letter{kind: letterOpen, from: 3, attempt: attempt, directions: toListener, name: "port"})
		s.mail()
		accepted := <-made
		dialed.Abort(soon(t), "")
		s.letter(letter{kind: letterClose, from: 2, to: dialed.number, attempt: attempt})
		if accepted.Err() != nil {
			t.Errorf("the other link: %v", accepted.Err())
		}
		s.letter(letter{kind: letterClose, attempt: attempt}) // of the link that it dialed
		if err := accepted.Err(); !errors.Is(err, ErrPeerClosed) {
			t.Errorf("the peer closed its link: %v", err)
		}
		accepted.Close()
		s.wait(time.Second)
		nothingLeft(t, h)
	})
}
