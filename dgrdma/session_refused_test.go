package dgrdma

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestRefused checks that a peer that takes no session times out with the reason that it says, and that the reason is known before.
func TestRefused(t *testing.T) {
	for _, x := range []struct {
		name    string
		refuses session.Refusal
		says    string
	}{
		{"unknown", session.NoUnknown, "takes no unknown peers"},
		{"full", session.NoRoom, "has as many peers as it may have"},
		{"sealed", session.NeedsSeal, "takes sealed connections alone: use its key"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _, c, epoch, end := awaited(t)
				defer end()
				if err := c.Refusal(); err != nil {
					t.Errorf("before anything came: %v", err)
				}
				done := make(chan error, 1)
				w := write(0, []byte("abc"), 64, 1)
				w.Done = func(_ *Transaction, err error) { done <- err }
				if err := c.Post(w); err != nil {
					t.Fatal(err)
				}
				b := make([]byte, frame.RefusedSize)
				h := frame.Handshake{Kind: frame.HandshakeRefused, Sender: epoch, Receiver: epoch}
				h.Put(b, s.dst, s.id)
				frame.Refusal{ID: s.id, Why: uint8(x.refuses)}.Put(b[frame.HandshakeSize:])
				s.raw(b)
				s.recv(time.Second)
				for _, err := range []error{c.Refusal(), <-done, c.Refusal()} {
					var e *PeerError
					if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrPeerDown) || !errors.As(err, &e) || e.Timeout() || !strings.Contains(err.Error(), x.says) {
						t.Errorf("%v", err)
					}
				}
			})
		})
	}
}

// TestRefusedByOurs checks that an endpoint says why it takes no session.
func TestRefusedByOurs(t *testing.T) {
	for _, x := range []struct {
		cfg  Config
		says string
	}{
		{Config{ID: 2}, "takes no unknown peers"},
		{Config{ID: 2, AcceptAny: true, MaxPeers: 1}, "has as many peers as it may have"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			memory, err := NewRegion(4096)
			if err != nil {
				t.Fatal(err)
			}
			x.cfg.Memory = memory
			there, err := New(n.Attach(addrB, simnet.Config{}), &x.cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer there.Close()
			if x.cfg.MaxPeers > 0 {
				connectTo(t, there, 9)
			}
			here, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1, GiveUp: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer here.Close()
			err = settle(t, &connectTo(t, here, 2).plain, write(0, []byte("abc"), 64, 1))
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%v", err)
			}
		})
	}
}
