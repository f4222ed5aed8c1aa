package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// reasonOf returns the reason that an error of a link holds.
func reasonOf(err error) string {
	var aborted *AbortError
	if !errors.As(err, &aborted) || !errors.Is(err, ErrPeerClosed) {
		return ""
	}
	return aborted.Reason
}

// TestAbort checks that the peer gets what was delivered before, then the reason, on both halves,
// though all buffers are full. No memory stays taken.
func TestAbort(t *testing.T) {
	for _, c := range []struct{ name, why, want string }{
		{"plain", "no space left on device", "no space left on device"},
		{"mischief", "\x1b[2Jgone\r\nsegment \xff", "?[2Jgone??segment ?"},
		{"long", strings.Repeat("x", 1000), strings.Repeat("x", 256)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				both := &Options{Directions: Both, Buffers: 4, Size: 10}
				a, b, out, in := pair(t, n, both, both)
				ctx := context.Background()
				for range 4 {
					if err := out.Out.Send(ctx, 0, []byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				if err := out.Abort(ctx, c.why); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for got := 0; ; got++ {
					m, err := in.In.Recv(ctx)
					if err == nil {
						in.In.Release(m)
						continue
					}
					if got != 4 || reasonOf(err) != c.want {
						t.Errorf("after %d messages: %v", got, err)
					}
					break
				}
				if _, err := in.Out.Acquire(ctx); reasonOf(err) != c.want {
					t.Errorf("to send: %v", err)
				}
				if _, err := out.In.Recv(ctx); !errors.Is(err, ErrClosed) {
					t.Errorf("received after Abort: %v", err)
				}
				if err := out.Abort(ctx, "again"); err != nil {
					t.Error(err)
				}
				in.Close()
				time.Sleep(time.Second)
				nothingLeft(t, a, b)
			})
		})
	}
}

// TestAbortByConsumer checks that a producer that waits for a buffer gets the reason.
func TestAbortByConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, nil, &Options{Buffers: 4, Size: 10})
		ctx := context.Background()
		failed := make(chan error)
		go func() {
			for {
				if err := out.Out.Send(ctx, 0, []byte("x")); err != nil {
					failed <- err
					return
				}
			}
		}()
		synctest.Wait()
		if err := in.Abort(ctx, "disk full"); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; reasonOf(err) != "disk full" {
			t.Error(err)
		}
		if err := out.Close(); reasonOf(err) != "disk full" {
			t.Error(err)
		}
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestAbortIsBounded checks that Abort waits for a peer that is gone no longer than the context, and
// no longer than until the peer is given up.
func TestAbortIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, _, out, _ := pair(t, n, nil, nil)
		n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1})
		n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Loss: 1}) // a peer that is heard is not gone
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if err := out.Abort(ctx, "enough"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := out.Abort(context.Background(), "enough"); err != nil || time.Since(began) > a.ep.GiveUp()*3/2 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestRefuse checks that dialers that wait, and later ones, are refused with the reason until it is
// lifted.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		l, err := b.Listen("port", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		waits := make(chan error)
		go func() { _, err := dial(ctx, a, 2, "port", nil); waits <- err }()
		synctest.Wait()
		l.Refuse("busy")
		if err := <-waits; !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), ": busy") {
			t.Errorf("a Dial that waited: %v", err)
		}
		places := b.peerOf(b.ep.Conns()[0]).countPending
		if got := places(); got != 0 {
			t.Errorf("%d places are still taken by refused dials", got)
		}
		if _, err := dial(ctx, a, 2, "port", nil); !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), ": busy") {
			t.Errorf("a later Dial: %v", err)
		}
		l.Refuse("")
		go func() { _, err := dial(ctx, a, 2, "port", nil); waits <- err }()
		if _, err := l.Accept(ctx); err != nil {
			t.Error(err)
		}
		if err := <-waits; err != nil || places() != 0 {
			t.Errorf("%v; %d places are still taken by accepted dials", err, places())
		}
	})
}
