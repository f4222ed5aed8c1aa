package dgrdma

import (
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// TestResetQuotesWhatWaits checks that a RESET ends a session only if it quotes a frame that waits for its acknowledgement, with the
// tag and an acknowledgement that it may have had (attack A21, SECURITY.md).
func TestResetQuotesWhatWaits(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.recv(time.Second)
		first := c.nextID.Load()
		reset := func(change func(h *frame.SessionHeader)) {
			h := s.header(first)
			h.Dst, h.Src, h.Tag, h.Ack = h.Src, h.Dst, session.Tag(session.Epoch(s.local), session.Epoch(s.theirs)), s.local
			if change != nil {
				change(&h)
			}
			b := make([]byte, 64)
			s.raw(b[:frame.PutReset(b, h)])
			s.recv(10 * time.Millisecond)
		}
		life := c.Life()
		done := make(chan error, 2)
		post := func() {
			x := write(0, []byte("abc"), 64, 1)
			x.Done = func(_ *Transaction, err error) { done <- err }
			if err := c.Post(x); err != nil {
				t.Fatal(err)
			}
			s.recv(time.Millisecond)
		}
		post()
		s.acks(frame.Seq(first - s.theirs))
		s.recv(10 * time.Millisecond)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		reset(nil) // it was acknowledged
		post()
		first++
		for _, change := range []func(h *frame.SessionHeader){
			func(h *frame.SessionHeader) { h.ID-- },
			func(h *frame.SessionHeader) { h.ID++ },
			func(h *frame.SessionHeader) { h.Tag++ },
			func(h *frame.SessionHeader) { h.Ack++ },
			func(h *frame.SessionHeader) { h.Ack -= 1 << 15 },
		} {
			reset(change)
			if c.Life() != life {
				t.Fatal("the session is over")
			}
		}
		reset(nil)
		if err := <-done; !errors.Is(err, ErrPeerRestarted) {
			t.Error(err)
		}
	})
}

// TestResetOfASymmetricTag checks that a RESET ends a session whose epochs make the same tag in both directions, as those of one
// session in 65,536 do.
func TestResetOfASymmetricTag(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.recv(time.Second)
		s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 77})
		var next uint32
		for _, f := range s.recv(time.Millisecond) {
			if h, ok := handshakeIn(&f); ok && h.Kind == frame.HandshakeWelcome {
				next = h.Sender
			}
		}
		s.greet(next ^ 0x12341234)
		mine, theirs := session.Epoch(s.local), session.Epoch(s.theirs)
		if session.Tag(mine, theirs) != session.Tag(theirs, mine) {
			t.Fatalf("the epochs %d and %d make two tags", mine, theirs)
		}
		s.recv(time.Second)
		first := c.nextID.Load()
		done := make(chan error, 1)
		x := write(0, []byte("abc"), 64, 1)
		x.Done = func(_ *Transaction, err error) { done <- err }
		if err := c.Post(x); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		h := s.header(first)
		h.Dst, h.Src, h.Ack = h.Src, h.Dst, s.local
		b := make([]byte, 64)
		s.raw(b[:frame.PutReset(b, h)])
		s.recv(10 * time.Millisecond)
		select {
		case err := <-done:
			if !errors.Is(err, ErrPeerRestarted) {
				t.Error(err)
			}
		default:
			t.Error("the session goes on")
		}
	})
}
