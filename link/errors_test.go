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

// TestErrorsNameThePackageOnce checks the texts of errors.
func TestErrorsNameThePackageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		b.serve(t, "port", nil)
		_, refused := a.Dial(soon(t), at(2), "no port", nil)
		_, second := On(a.ep, 0)
		a.Close()
		_, closed := On(a.ep, 0)
		for _, c := range []struct {
			err, is error
			says    string
		}{
			{refused, ErrRefused, `link: dial port "no port" of peer 2 at 02:00:00:00:00:02: refused by the peer: no port`},
			{second, nil, "dgrdma: serve link: the endpoint serves"},
			{closed, dgrdma.ErrClosed, "dgrdma: closed"},
		} {
			if c.err == nil || c.is != nil && !errors.Is(c.err, c.is) || !strings.HasPrefix(c.err.Error(), c.says) {
				t.Errorf("%v, want %s", c.err, c.says)
			}
		}
	})
}

// TestErrorsSayWhetherItWasSilence checks Timeout and Temporary, as errors of package net have them.
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

// TestOffenceOfAPeer checks that the error of a link whose peer broke the rules says which rule, and
// of which buffer.
func TestOffenceOfAPeer(t *testing.T) {
	flag := func(n int) uint32 { return uint32(PackFlag(n, 1, false)) }
	for _, c := range []struct {
		says string
		send func(s *fakePeer, in *half)
	}{
		{"buffer 1 was filled before it was given back", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data+in.Pitch, []byte("first"), in.Flags+4, flag(5)))
			s.frame(s.write(in.Data+in.Pitch, []byte("later"), in.Flags+4, flag(5)))
		}},
		{"buffer 1 is filled by two transactions", func(s *fakePeer, in *half) {
			s.frame(s.message(0, 2, 1, in.Data+in.Pitch, []byte("ab"), in.Flags+4, flag(4)), s.message(1, 2, 1, in.Data+in.Pitch+2, []byte("cd"), in.Flags+4, flag(4)))
		}},
		{"buffer 0 gets data that its transaction does not count", func(s *fakePeer, in *half) {
			s.frame(s.message(0, 0, 1, in.Data, []byte("first"), in.Flags, flag(5)))
		}},
		{"buffer 0 completes with data that is not in it, at 0x", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data+in.Pitch, []byte("x"), in.Flags, flag(1)))
		}},
		{"buffer 0 was declared full with 2 bytes, and others came", func(s *fakePeer, in *half) {
			s.frame(s.write(in.Data, []byte("xyz"), in.Flags, flag(2)))
		}},
		{"a message of 97 bytes in a buffer of 96", func(s *fakePeer, in *half) {
			s.frame(s.word(in.Flags, flag(97)))
		}},
	} {
		t.Run(c.says, func(t *testing.T) {
			withFakePeer(t, &Options{Buffers: 2, Size: 96}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
				in := <-made
				c.send(s, &yes.out)
				s.wait(10 * time.Millisecond)
				if err := in.Err(); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), c.says) {
					t.Error(err)
				}
			})
		})
	}
}
