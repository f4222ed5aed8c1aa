package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestDeadPeerIsClosed checks that the connection to a peer that was given up is closed, so that what
// it still sends is not let in.
func TestDeadPeerIsClosed(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		l := <-made
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		s.wait(2 * h.ep.GiveUp())
		if !errors.Is(l.Err(), dgrdma.ErrPeerDown) || l.Peer().Err() == nil {
			t.Fatalf("%v, and the connection: %v", l.Err(), l.Peer().Err())
		}
		for _, c := range h.ep.Conns() {
			if c == l.Peer() {
				t.Error("the connection to a dead peer is still there")
			}
		}
		l.Close()
		s.frame(s.write(yes.out.Data, []byte("x"), yes.out.Flags, uint32(PackFlag(1, 0, false))))
		s.wait(time.Millisecond)
		nothingLeft(t, h)
	})
}

// TestSilentPeerIsAbandoned checks that the connection to a peer that wrote no letter is closed when
// the last Dial to it ends, unless a link is on it or the endpoint is shared, and that nothing of it
// is kept.
func TestSilentPeerIsAbandoned(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(h *Host, conn *dgrdma.Conn) error
		left bool
	}{
		{"alone", func(*Host, *dgrdma.Conn) error { return nil }, true},
		{"another Dial, which has not asked yet", func(h *Host, conn *dgrdma.Conn) error { h.peerOf(conn).dials.Add(1); return nil }, false},
		{"a link of another kind", func(h *Host, conn *dgrdma.Conn) error {
			_, _, err := h.Offer(conn, 0, &Options{Buffers: 1, Size: 8})
			return err
		}, false},
		{"a link of another kind, which was closed", func(h *Host, conn *dgrdma.Conn) error {
			l, _, err := h.Offer(conn, 0, &Options{Buffers: 1, Size: 8})
			l.Close()
			return err
		}, true},
		{"a letter that came", func(h *Host, conn *dgrdma.Conn) error { h.peerOf(conn).Letter(nil); return nil }, false},
		{"a shared endpoint", func(h *Host, _ *dgrdma.Conn) error { h.ownsEndpoint = false; return nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newNet(t, 1).host(1, nil)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				ended := make(chan error, 1)
				go func() { _, err := h.Dial(ctx, at(2), "port", nil); ended <- err }()
				synctest.Wait()
				conn := h.ep.Conns()[0]
				if got := h.peerOf(conn).dials.Load(); got != 1 {
					t.Errorf("%d Dials are counted", got)
				}
				if err := c.with(h, conn); err != nil {
					t.Fatal(err)
				}
				before := h.peerOf(conn).dials.Load()
				// A Dial that ends earlier leaves all to the other one.
				if _, err := h.Dial(soon(t), at(2), "port", nil); !errors.Is(err, ErrNoAnswer) {
					t.Fatal(err)
				}
				if conn.Err() != nil || len(h.ep.Conns()) != 1 {
					t.Error("the connection is closed before the last Dial ends")
				}
				if err := <-ended; !errors.Is(err, ErrNoAnswer) {
					t.Fatal(err)
				}
				synctest.Wait()
				if left := conn.Err() != nil && len(h.ep.Conns()) == 0; left != c.left {
					t.Errorf("%v", conn.Err())
				}
				if got := h.peerOf(conn).dials.Load(); got != before-1 {
					t.Errorf("%d Dials are counted at the end, want %d", got, before-1)
				}
				if c.left {
					nothingLeft(t, h)
				}
				h.ownsEndpoint = true
			})
		})
	}
}

// TestEndWaitsForWords checks that the memory of a link that is closed, and its letter of the end,
// wait for what is in flight.
func TestEndWaitsForWords(t *testing.T) {
	withFakePeer(t, &Options{Directions: Both, Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener|toDialer, half{Credit: 1 << 15}, buffers(4, 8))
		l := <-made
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		s.frame(s.write(yes.out.Data, []byte("x"), yes.out.Flags, uint32(PackFlag(1, 0, false))))
		m, err := l.In.Recv(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		l.In.Release(m) // a credit is in flight
		l.Out.Send(soon(t), 0, []byte("message"))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		l.CloseContext(ctx)
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if st := h.Stats(); len(st.Links) != 1 || st.Free == st.Memory {
			t.Error("memory was given back while words of the link are under way")
		}
		for _, m := range s.mail() {
			if m.kind == letterClose {
				t.Error("the peer was told that nothing comes any more, and something is under way")
			}
		}
		s.mu.Lock()
		s.mute = false
		s.mu.Unlock()
		s.wait(time.Second)
		closed := 0
		for _, m := range s.mail() {
			if m.kind == letterClose && m.from == yes.from {
				closed++
			}
		}
		if closed != 1 {
			t.Errorf("%d closing letters", closed)
		}
		nothingLeft(t, h)
	})
}
