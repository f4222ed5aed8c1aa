package dgrdma

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// TestForgedFrameOfAPeer checks that an attacker that sees the traffic of two endpoints of ours,
// and forges one frame that fits as well as it can, ends nothing: what the peer sent before and
// comes again is acknowledged again, and what it sends next is applied (attack A12, SECURITY.md).
func TestForgedFrameOfAPeer(t *testing.T) {
	const known = 20 // ids of the peer so far
	for name, forge := range map[string]func(s *fakePeer){
		"HELLO": func(s *fakePeer) { s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 77}) },
		"CONFIRM": func(s *fakePeer) {
			s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 77, Receiver: s.theirs, Check: s.check})
		},
		"REJECT": func(s *fakePeer) {
			s.shake(frame.Handshake{Kind: frame.HandshakeReject, Sender: s.theirs, Receiver: 77, Check: s.check})
		},
		"RESET of what did not leave": func(s *fakePeer) {
			b := make([]byte, 64)
			h := s.header(s.theirs + 1000)
			h.Dst, h.Src, h.Tag = h.Src, h.Dst, session.Tag(session.Epoch(s.local), session.Epoch(s.theirs))
			s.raw(b[:frame.PutReset(b, h)])
		},
		"BYE of another session": func(s *fakePeer) {
			b := make([]byte, 64)
			h := s.header(0)
			s.raw(b[:frame.PutBye(b, &h, frame.Bye{Sender: s.local, Receiver: s.theirs + 1})])
		},
		"dataFarAhead": func(s *fakePeer) {
			s.send(known+20000, data(life+known+5, 1, 1, 512, []byte("forged!!")))
		},
		"dataUnderAKnownId": func(s *fakePeer) {
			s.send(known, data(life+known+5, 1, 1, 512, []byte("forged!!")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				honest := func(id frame.Seq) { s.send(id, data(life+uint32(id)-2, 1, 1, 64, []byte("12345678"))) }
				for id := frame.Seq(1); id <= known; id++ {
					honest(id)
				}
				s.recv(50 * time.Millisecond)
				first := c.Stats()
				forge(s)
				s.recv(50 * time.Millisecond)
				st, want := c.Stats(), uint64(1)
				if name == "HELLO" {
					want = 0 // it is answered
				}
				if n := st.RefusedBy(RefusedForeign) - first.RefusedBy(RefusedForeign) + st.Duplicates - first.Duplicates; n != want {
					t.Errorf("counted %d times, want %d: refused %v", n, want, st.RefusedReasons())
				}
				if got := e.memory.(*Region).Bytes()[512]; got != 0 {
					t.Errorf("what was forged is in the memory: %q", got)
				}
				honest(known - 3)
				if !acked(s.recv(50*time.Millisecond), known-3) {
					t.Error("what came again is not acknowledged")
				}
				before := c.Stats().Completions
				for id := frame.Seq(known + 1); id <= known+10; id++ {
					honest(id)
				}
				if sent := s.recv(50 * time.Millisecond); c.Stats().Completions != before+10 || !acked(sent, known+10) {
					t.Errorf("%d of 10 transactions applied", c.Stats().Completions-before)
				}
			})
		})
	}
}

// TestBlindForgery checks that an attacker that knows ids and addresses of a connection, and sees nothing of it, has no frame applied: the
// tag is one of 2^32, and the id has to be in the window (attack A25, SECURITY.md).
func TestBlindForgery(t *testing.T) {
	tries := fewer(500_000, 50_000)
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		rnd := rand.New(rand.NewPCG(1, 2))
		before := c.Stats().Completions
		for i := range uint32(tries) {
			b := s.encode(1, data(i, 1, 1, 512, []byte("forged!!")))
			h := s.header(rnd.Uint32())
			h.Tag = rnd.Uint32()
			h.Put(b)
			if s.raw(b); i%64 == 0 {
				s.recv(time.Microsecond)
			}
		}
		s.recv(50 * time.Millisecond)
		if n := c.Stats().Completions - before; n > 0 {
			t.Errorf("of %d forged frames %d were applied", tries, n)
		}
		s.send(1, data(life, 1, 1, 64, []byte("12345678")))
		if !acked(s.recv(50*time.Millisecond), 1) || c.Err() != nil {
			t.Errorf("what the peer sends is not applied: %v", c.Err())
		}
	})
}

// TestForgedBeforeData checks that no forged frame, before the peer has sent data, has what it sends then acknowledged under an id that it
// did not have (attack A12, SECURITY.md).
func TestForgedBeforeData(t *testing.T) {
	const far = 20_000
	for name, forge := range map[string]func(s *fakePeer){
		"nothing": func(*fakePeer) {},
		"data":    func(s *fakePeer) { s.send(far, data(life, 1, 1, 64, []byte("forged!!"))) },
		"an ACK":  func(s *fakePeer) { s.acksOnly(far, 1) },
		"a CONFIRM": func(s *fakePeer) {
			s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: life + far, Receiver: s.theirs})
		},
		"a WELCOME": func(s *fakePeer) {
			s.shake(frame.Handshake{Kind: frame.HandshakeWelcome, Sender: life + far, Receiver: s.theirs})
		},
	} {
		withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			forge(s)
			s.recv(10 * time.Millisecond)
			s.send(1, data(life, 1, 1, 64, []byte("12345678")))
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			n := 0
			for _, b := range s.raws {
				f, err := frame.ParseSession(b)
				if err != nil {
					continue
				}
				n++
				if a, ok := f.SessionAck(); f.Ack != life+1 || ok && (a.Ranges.Len() > 0 || f.ID != life+1) {
					t.Errorf("%s forged: frame 1 is acknowledged by %v", name, f)
				}
			}
			if n == 0 || c.Stats().Completions != 1 {
				t.Errorf("%s forged: frame 1 is acknowledged %d times", name, n)
			}
		})
	}
}

// TestAcksOfAnotherSession checks that an acknowledgement counts only in the session that it is of: one of another session of the same
// peer, which used the same ids, does not (attacks A12 and A25, SECURITY.md).
func TestAcksOfAnotherSession(t *testing.T) {
	for _, alone := range []bool{true, false} {
		withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			done := 0
			if err := c.Post(&Transaction{Completion: Word(4, 1), Done: func(*Transaction, error) { done++ }}); err != nil {
				t.Fatal(err)
			}
			newest := frame.Seq(0)
			for _, f := range s.recv(time.Millisecond) {
				newest = max(newest, f.Seq)
			}
			says := func(id frame.Seq) {
				if alone {
					s.acks(newest)
				} else {
					s.upTo = s.theirs + uint32(newest)
					s.send(id, data(life, 1, 1, 64, pattern(1, 8)))
				}
				s.recv(time.Millisecond)
			}
			before := c.Stats()
			s.local += 1 << 20
			says(1)
			s.local -= 1 << 20
			if st := c.Stats(); done > 0 || st.Completions > 0 || st.RefusedBy(RefusedForeign) != before.RefusedBy(RefusedForeign)+1 {
				t.Errorf("alone %v: an acknowledgement of another session: %d done, refused %v", alone, done, st.RefusedReasons())
			}
			if says(1); done != 1 {
				t.Errorf("alone %v: that of the session does not count", alone)
			}
		})
	}
}
