package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestCloseTellsThePeer: who has a link with a host that is closed hears so at once, and not
// that the peer is dead when it is given up; what was delivered before can be received.
func TestCloseTellsThePeer(t *testing.T) {
	for _, c := range []struct {
		name  string
		links int // of which all are told
		how   func(h *Host) error
	}{
		{"Close", 1, (*Host).Close},
		{"Shutdown", 3, func(h *Host) error { return h.Shutdown(context.Background()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				a, b := n.host(1, nil), n.host(2, nil)
				made := b.serve(t, "port", &Options{Buffers: 2, Size: 8})
				var in []*Link
				for range c.links {
					out, err := a.Dial(soon(t), at(2), "port", nil)
					if err != nil {
						t.Fatal(err)
					}
					in = append(in, <-made)
					if err := errors.Join(out.Out.Send(soon(t), 7, []byte("hello")), out.Out.Flush(soon(t))); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second) // nothing is under way
				if err := c.how(a); err != nil {
					t.Error(err)
				}
				for _, l := range in {
					if m, err := l.In.Recv(soon(t)); err != nil || string(m.Bytes) != "hello" {
						t.Errorf("%q, %v", m.Bytes, err)
					}
					_, err := l.In.Recv(soon(t))
					var aborted *AbortError
					if !errors.As(err, &aborted) || aborted.Reason != "the host was closed" || !errors.Is(err, ErrPeerClosed) {
						t.Errorf("the peer hears: %v", err)
					}
				}
			})
		})
	}
}

// TestErrorsSayTheirRoomOnce, in their text.
func TestErrorsSayTheirRoomOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		b.serve(t, "port", nil)
		_, refused := a.Dial(soon(t), at(2), "nobody's", nil)
		_, second := On(a.ep, 0)
		a.Close()
		_, closed := On(a.ep, 0)
		for _, c := range []struct {
			err, is error
			says    string
		}{
			{refused, ErrRefused, `link: dial port "nobody's" of peer 2 at 02:00:00:00:00:02: refused by the peer: no port`},
			{second, nil, "dgrdma: serve link: the endpoint serves"},
			{closed, dgrdma.ErrClosed, "dgrdma: closed"},
		} {
			if c.err == nil || c.is != nil && !errors.Is(c.err, c.is) || !strings.HasPrefix(c.err.Error(), c.says) {
				t.Errorf("%v, want %s", c.err, c.says)
			}
		}
	})
}

// TestErrorsSayWhetherItWasSilence: as errors of package net do.
func TestErrorsSayWhetherItWasSilence(t *testing.T) {
	for _, c := range []struct {
		err     error
		timeout bool
	}{
		{ErrNoAnswer, true}, {context.DeadlineExceeded, true}, {&dgrdma.PeerError{Err: dgrdma.ErrPeerDown}, true},
		{&dgrdma.PeerError{Err: dgrdma.ErrPeerClosed}, false}, {ErrRefused, false}, {ErrPeerClosed, false}, {dgrdma.ErrClosed, false},
	} {
		var e interface { // net.Error
			error
			Timeout() bool
			Temporary() bool
		}
		if err := fmt.Errorf("in a program: %w", &Error{Op: "dial", Peer: "peer 2", Err: c.err}); !errors.As(err, &e) || e.Timeout() != c.timeout {
			t.Errorf("%v: Timeout is not %v", err, c.timeout)
		}
	}
}
