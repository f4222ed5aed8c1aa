package dgrdma

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestAnswersOfEachKind checks that a HELLO is answered whatever comes with it at once, and so is that.
func TestAnswersOfEachKind(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 77})
		s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 78, Receiver: 79, Check: 80})
		s.send(1, data(life, 1, 1, 64, pattern(1, 8)))
		sent := s.recv(time.Second)
		kinds := make(map[frame.HandshakeKind]frame.Handshake)
		for _, f := range sent {
			if h, ok := handshakeIn(&f); ok {
				kinds[h.Kind] = h
			}
		}
		if w, r := kinds[frame.HandshakeWelcome], kinds[frame.HandshakeReject]; w.Receiver != 77 || w.Sender == s.theirs || r.Sender != 78 || r.Receiver != 79 || r.Check != 80 || !acked(sent, 1) {
			t.Errorf("answered by %+v; the data is acknowledged: %v", kinds, acked(sent, 1))
		}
	})
}

// TestRejectedSessionFailsWhatWasSent checks that what was sent in a session that the peer turns out not to have fails, wherever the
// services of the next one are, and that what was not sent yet is sent then.
func TestRejectedSessionFailsWhatWasSent(t *testing.T) {
	const company = 50 * time.Millisecond // for which what is posted waits
	at := func(base uint32) []frame.Service {
		return []frame.Service{serviceAt("memory", 0), serviceAt("post", base)}
	}
	for _, x := range []struct {
		base uint32 // of the service in the next session
		sent bool
		want error
	}{{1 << 16, true, ErrPeerRestarted}, {1 << 20, true, ErrPeerRestarted}, {1 << 16, false, nil}, {1 << 20, false, nil}} {
		withFakePeer(t, Config{Coalesce: company}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			post := newShelf("post", 1<<16)
			serve(t, e, post)
			c.Reset(0)
			mine := s.asked()
			s.welcome(70, mine, at(1<<16)...)
			s.recv(time.Millisecond)
			done := errors.New("not done")
			tx := &Transaction{Completion: Word(x.base+MailSize, 1), Done: func(_ *Transaction, err error) { done = err }}
			if err := post.channel(0).Flow().Post(tx); err != nil {
				t.Fatal(err)
			}
			if x.sent {
				s.recv(2 * company)
			}
			s.shake(frame.Handshake{Kind: frame.HandshakeReject, Sender: mine, Receiver: 70})
			if again := s.asked(); again != mine {
				t.Errorf("asks as %d after the REJECT, want %d", again, mine)
			}
			s.welcome(80, mine, at(x.base)...)
			s.acks(0)
			newest := frame.Seq(0)
			for _, f := range s.recv(2 * company) {
				if !isHandshake(&f) {
					newest = max(newest, f.Seq)
				}
			}
			if newest > 0 {
				s.acks(newest)
			}
			s.recv(time.Millisecond)
			if st := c.Stats(); st.Theirs != 80 || !errors.Is(done, x.want) {
				t.Errorf("services at %#x, sent %v: %v, want %v; epoch %d is the peer's", x.base, x.sent, done, x.want, st.Theirs)
			}
		})
	}
}

// TestHandshakeTakesTime checks that the time that the handshake takes is the first that is known of the path to the peer, but if one
// of its HELLOs was lost: then it is not known which was answered.
func TestHandshakeTakesTime(t *testing.T) {
	const latency = 2 * time.Millisecond
	for lost := range 2 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				n.Link(addrA, addrB, simnet.Link{Latency: latency, Script: func(i int, _ []byte) simnet.Verdict {
					if i < lost {
						return simnet.Drop()
					}
					return simnet.Deliver()
				}})
				n.Link(addrB, addrA, simnet.Link{Latency: latency})
				var toB *Conn
				for i, addr := range []transport.Addr{addrA, addrB} {
					e, err := New(n.Attach(addr, simnet.Config{}), &Config{ID: frame.EndpointID(1 + i), AcceptAny: i == 1})
					if err != nil {
						t.Fatal(err)
					}
					defer e.Close()
					if i == 0 {
						if toB, err = e.Connect(Peer{ID: 2, Addr: addrB}); err != nil {
							t.Fatal(err)
						}
					}
				}
				time.Sleep(helloFirst + 2*latency + time.Microsecond)
				st := toB.Stats()
				if known := st.RTT == 2*latency; !st.Ready() || known != (lost == 0) {
					t.Errorf("%d lost, ready %v; a round trip takes %v, known to take %v", lost, st.Ready(), 2*latency, st.RTT)
				}
			})
		})
	}
}
