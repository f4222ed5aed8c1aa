package dgrdma

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// awaited returns a scripted peer to which an endpoint connects, and the epoch under which that asks.
func awaited(t *testing.T) (s *fakePeer, e *Endpoint, c *Conn, epoch uint32, end func()) {
	t.Helper()
	n := simnet.New(1)
	memory, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	s = newStranger(t, n, addrB, 2, 1, addrA)
	e, err = New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1, Memory: memory, GiveUp: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c = connectTo(t, e, 2)
	return s, e, c, s.asked(), func() { e.Close(); n.Close() }
}

// briefly sends a frame of the handshake without a list of services.
func (s *fakePeer) briefly(h frame.Handshake) {
	s.t.Helper()
	b := make([]byte, frame.RefusedSize)
	h.Put(b, s.dst, s.id)
	if h.Kind != frame.HandshakeHello {
		b = b[:frame.HandshakeSize]
	}
	s.raw(b)
}

// TestServicesOfBriefWelcome checks that a peer learns which services there are, although its HELLO had no room for a list, so that the
// WELCOME had none either, and although no CONFIRM comes, because both ask.
func TestServicesOfBriefWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, epoch, end := awaited(t)
		defer end()
		s.briefly(frame.Handshake{Kind: frame.HandshakeHello, Sender: 77})
		for _, f := range s.recv(time.Millisecond) {
			if h, ok := handshakeIn(&f); ok && h.Kind == frame.HandshakeWelcome && f.Size() > frame.RefusedSize {
				t.Errorf("the answer has %d bytes", f.Size())
			}
		}
		s.welcome(77, epoch, serviceAt("memory", 0))
		s.send(1, msg{frame.Message{Txn: 1, CompletionAddr: 64, CompletionValue: 1, Count: 0}, nil})
		told := 0
		for _, f := range s.recv(time.Second) {
			for c := f.Cursor(); c.Next(); {
				if c.Msg.Type != frame.TypeServices || f.Seq != 1 {
					continue
				}
				told++
				if list, ok := frame.ParseServices(c.Data); !ok || len(list.All()) != 1 {
					t.Errorf("told %v, %v", list.All(), ok)
				}
			}
		}
		if told == 0 {
			t.Error("the peer is not told")
		}
	})
}

// TestListThatNeverComes checks that a peer which has yet to send the list of its services, and for which this side timed out, is noticed:
// it is asked by a bell.
func TestListThatNeverComes(t *testing.T) {
	for _, answers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, _, c, epoch, end := awaited(t)
			defer end()
			s.briefly(frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 77, Receiver: epoch})
			s.has(77, epoch, 0)
			s.acks(0)
			s.recv(time.Millisecond)
			s.acks(1) // it is told of our services, as its frame has no room for a list
			s.recv(5 * time.Second)
			done := make(chan error, 1)
			x := write(0, []byte("abc"), 64, 1)
			x.Done = func(_ *Transaction, err error) { done <- err }
			if err := c.Post(x); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1001 * time.Millisecond)
			synctest.Wait()
			s.mu.Lock()
			raws := s.raws
			s.mu.Unlock()
			if len(raws) != 0 {
				f, err := frame.ParseSession(raws[0])
				if err != nil || f.Control != frame.ControlBell {
					t.Fatalf("% x, %v", raws[0], err)
				}
				if answers {
					b := make([]byte, 64)
					s.raw(b[:frame.PutReset(b, f.SessionHeader)])
				}
			} else {
				t.Fatal("no bell comes")
			}
			frames := s.recv(4 * time.Second)
			select {
			case err := <-done:
				if answers != errors.Is(err, ErrPeerRestarted) || !answers && !errors.Is(err, ErrPeerDown) {
					t.Errorf("answers %v: %v", answers, err)
				}
			default:
				t.Errorf("answers %v: nothing is reported", answers)
			}
			asks := false
			for _, f := range frames {
				h, ok := handshakeIn(&f)
				asks = asks || ok && h.Kind == frame.HandshakeHello
			}
			if asks != answers {
				t.Errorf("asks for another session: %v, want %v", asks, answers)
			}
		})
	}
}

// TestUnacknowledgedTakesLittle checks that what an endpoint sends by itself, a list of services and a bell, takes little memory of it where
// the peer never acknowledges that (attack A6, SECURITY.md).
func TestUnacknowledgedTakesLittle(t *testing.T) {
	for _, checksum := range []bool{false, true} {
		f := newFeed(t, Config{Checksum: checksum})
		c, err := f.e.Connect(Peer{ID: 1, Addr: addrA})
		if err != nil {
			t.Fatal(err)
		}
		shake := func(h frame.Handshake) []frame.Frame {
			h.Sender, h.Checks = 77, checksum
			b := make([]byte, frame.ListedSize, frame.ListedSize+frame.ChecksumSize)
			h.Put(b, 2, 1)
			new(frame.Services).Put(b[frame.HandshakeSize:]) // it knows none
			if checksum {
				b = frame.AddChecksum(b)
			}
			return f.answers(b)
		}
		confirm := frame.Handshake{Kind: frame.HandshakeConfirm}
		for _, in := range shake(frame.Handshake{Kind: frame.HandshakeHello}) {
			if h, ok := handshakeIn(&in); ok && h.Kind == frame.HandshakeWelcome {
				confirm.Receiver, confirm.Check = h.Sender, h.Check
			}
		}
		shake(confirm)
		f.keeps = true
		c.mu.Lock()
		c.session.tx.bell = true
		c.tx.wake(f.e.now())
		c.mu.Unlock()
		for range 3 {
			f.give(nil)
		}
		var kinds []frame.Control
		for _, b := range f.sessionFrames {
			if h, ok := frame.SessionHeaderOf(b); ok {
				kinds = append(kinds, h.Control)
			}
		}
		if !slices.Contains(kinds, frame.NoControl) || !slices.Contains(kinds, frame.ControlBell) {
			t.Errorf("checksum %v: sent %v, want a list and a bell", checksum, kinds)
		}
		c.mu.Lock()
		total := c.tx.inFlight.Memory()
		c.mu.Unlock()
		if total == 0 || total > 512 {
			t.Errorf("checksum %v: %d bytes are kept of them, want at most 512", checksum, total)
		}
	}
}
