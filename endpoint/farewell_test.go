package endpoint

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestGivenUpHears: a peer that was given up while it stood still, or was away, hears of it as soon as it says something, and not
// when it gives up for its part: the connection works again after a Reset there.
func TestGivenUpHears(t *testing.T) {
	for name, says := range map[string]func(t *testing.T, c *Conn) error{
		"data": func(t *testing.T, c *Conn) error { return c.Write(t.Context(), write(0, pattern(1, 8), 64, 1)) },
		"a question whether anybody is there": func(t *testing.T, c *Conn) error {
			select {
			case <-c.Done():
				return c.Err()
			case <-t.Context().Done():
				return t.Context().Err()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{a: Config{GiveUp: time.Second}, b: Config{GiveUp: time.Minute, KeepAlive: 5 * time.Second}})
				defer p.close()
				if err := errors.Join(p.toB.Write(t.Context(), write(0, pattern(1, 8), 64, 1)), p.toA.Write(t.Context(), write(0, pattern(1, 8), 64, 1))); err != nil {
					t.Fatal(err)
				}
				p.net.Link(addrA, addrB, simnet.Link{Down: true})
				p.net.Link(addrB, addrA, simnet.Link{Down: true})
				if err := p.toB.Write(t.Context(), write(0, pattern(2, 8), 64, 2)); !errors.Is(err, ErrPeerDown) {
					t.Fatal(err)
				}
				p.net.Link(addrA, addrB, simnet.Link{})
				p.net.Link(addrB, addrA, simnet.Link{})
				began := time.Now()
				if err := says(t, p.toA); !errors.Is(err, ErrPeerClosed) {
					t.Errorf("the peer that was given up hears %v", err)
				}
				if d := time.Since(began); d > 6*time.Second {
					t.Errorf("after %v", d)
				}
				if n := p.a.Stats().FramesSent; n > 20 {
					t.Errorf("%d frames", n)
				}
				if err := p.toA.Reset(0); err != nil {
					t.Fatal(err)
				}
				if err := p.toA.Write(t.Context(), write(0, pattern(3, 8), 64, 3)); err != nil || p.memA.Load32(64) != 3 {
					t.Errorf("%v, the flag is %d", err, p.memA.Load32(64))
				}
			})
		})
	}
}

// goodbyes reports whether got is so many, of the life that greeted the stranger to its own.
func (s *stranger) goodbyes(got []frame.Frame, n int) bool {
	for i := range got {
		if h, ok := helloOf(&got[i]); !ok || h != (frame.Hello{Life: s.theirs, Peer: life, Leaves: true}) {
			return false
		}
	}
	return len(got) == n
}
