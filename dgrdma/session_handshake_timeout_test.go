package dgrdma

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// outcome posts a write, which waits after this for its end.
func outcome(t *testing.T, c *Conn) (done chan error) {
	t.Helper()
	done = make(chan error, 1)
	w := write(0, []byte("abc"), 64, 1)
	w.Done = func(_ *Transaction, err error) { done <- err }
	if err := c.Post(w); err != nil {
		t.Fatal(err)
	}
	return done
}

// TestRefusedConfirm checks that a peer that answered HELLO with WELCOME, and refuses the CONFIRM, times out with the reason that it says, also
// where data was sent after the CONFIRM; and that the reason counts until the peer takes the session.
func TestRefusedConfirm(t *testing.T) {
	for _, before := range []bool{false, true} {
		for _, takes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s, _, c, epoch, end := awaited(t)
				defer end()
				var done chan error
				if before {
					done = outcome(t, c)
				}
				s.welcome(life, epoch, serviceAt("memory", 0))
				s.recv(time.Millisecond)
				b := make([]byte, frame.RefusedSize)
				h := frame.Handshake{Kind: frame.HandshakeRefused, Sender: epoch, Receiver: epoch}
				h.Put(b, s.dst, s.id)
				frame.Refusal{ID: s.id, Why: uint8(session.NoRoom)}.Put(b[frame.HandshakeSize:])
				s.raw(b)
				s.recv(time.Millisecond)
				if err := c.Refusal(); !errors.Is(err, ErrRefused) {
					t.Errorf("after REFUSED: %v", err)
				}
				if !before {
					done = outcome(t, c)
				}
				if takes {
					s.bell(1)
					s.recv(time.Millisecond)
					s.acks(frame.Seq(c.nextID.Load() - 1 - s.theirs))
					s.recv(time.Millisecond)
					if err := c.Refusal(); err != nil {
						t.Errorf("in the session: %v", err)
					}
				}
				err := <-done
				switch {
				case takes && err != nil:
					t.Errorf("in the session the write ended with: %v", err)
				case !takes && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "has as many peers as it may have")):
					t.Errorf("the write ended with: %v", err)
				case !takes && !errors.Is(c.Refusal(), ErrRefused):
					t.Errorf("the peer is down, refused: %v", c.Refusal())
				}
			})
		}
	}
}

// TestListNeverComes checks that a peer of a session that acknowledges all, and never says which services it has, is given up when something
// was posted for GiveUp; and that one without anything posted is not.
func TestListNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e, c, epoch, end := awaited(t)
		defer end()
		s.has(life, epoch, 0)
		s.briefly(frame.Handshake{Kind: frame.HandshakeWelcome, Sender: life, Receiver: epoch})
		answer := func(d time.Duration) {
			for until := time.Now().Add(d); time.Now().Before(until); {
				for _, f := range s.recv(50 * time.Millisecond) {
					if f.HasMessages() && f.Seq > 0 && !isHandshake(&f) {
						s.acks(f.Seq)
					}
				}
				s.bell(1)
				s.acks(frame.Seq(c.nextID.Load() - 1 - s.theirs))
			}
		}
		answer(5 * e.GiveUp())
		if err := c.Err(); err != nil {
			t.Fatalf("nothing is posted: %v", err)
		}
		began, done := time.Now(), outcome(t, c)
		answer(e.GiveUp() - 100*time.Millisecond)
		select {
		case err := <-done:
			t.Fatalf("after %v: %v", time.Since(began), err)
		default:
		}
		answer(time.Second)
		select {
		case err := <-done:
			if !errors.Is(err, ErrPeerDown) || !strings.Contains(err.Error(), "list of its services") {
				t.Errorf("the write ended with: %v", err)
			}
		default:
			t.Errorf("the write waits for %v", time.Since(began))
		}
	})
}
