package dgrdma

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestDownIsToldBeforeUp checks that a peer that timed out, and is back while some have not heard
// of that yet, is not taken back before they have: the goroutine that resets the connection when it
// fails, or the peer itself, may be faster than the one that tells.
func TestDownIsToldBeforeUp(t *testing.T) {
	for _, x := range []struct {
		name  string
		prof  Profile
		reset bool
		back  EventKind
	}{
		{"Reset", Native(), true, PeerUp},
		{"another life", Native(), false, PeerRestarted},
		{"Reset of a driver", OpenCPI(false), true, PeerUp},
	} {
		t.Run(x.name, func(t *testing.T) {
			var heard []EventKind
			cfg := Config{GiveUp: time.Second, OnEvent: func(ev Event) {
				if ev.Kind == PeerDown {
					time.Sleep(time.Second) // others run, and this goroutine does not
				}
				if ev.Kind != FrameRefused {
					heard = append(heard, ev.Kind)
				}
			}}
			withFakePeer(t, cfg, x.prof, func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				comes := func() {
					if !x.prof.Session {
						s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
						return
					}
					s.shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 2 * life})
					for _, f := range s.recv(time.Millisecond) {
						if h, ok := handshakeIn(&f); ok && h.Kind == frame.HandshakeWelcome {
							s.shake(frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 2 * life, Receiver: h.Sender, Check: h.Check})
						}
					}
				}
				if !x.prof.Session {
					s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
					s.recv(time.Millisecond)
				}
				failed := c.Done()
				tx := write(64, pattern(1, 16), 0, 1)
				if err := c.Post(tx); err != nil {
					t.Fatal(err)
				}
				s.recv(time.Second)
				<-failed
				if !errors.Is(c.Err(), ErrPeerDown) {
					t.Fatal(c.Err())
				}
				if x.reset {
					if err := c.Reset(0); err != nil {
						t.Fatal(err)
					}
				}
				for range 100 {
					comes()
					s.recv(20 * time.Millisecond)
				}
				if want := []EventKind{PeerUp, PeerDown, x.back}; !slices.Equal(heard, want) {
					t.Errorf("heard %v, want %v", heard, want)
				}
				if c.Err() != nil {
					t.Errorf("is down: %v", c.Err())
				}
			})
		})
	}
}
