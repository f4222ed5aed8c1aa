package link

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// waitingAtPort returns how many links wait at a host's only port.
func (h *Host) waitingAtPort() int { return h.Stats().Ports[0].Waiting }

// giveUpDials dials a port so many times, and gives each up after d.
func giveUpDials(t *testing.T, h *Host, times int, d time.Duration) {
	t.Helper()
	for range times {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		_, err := h.Dial(ctx, at(2), "frames", &Options{Buffers: 2, Size: 8})
		cancel()
		if !errors.Is(err, ErrNoAnswer) {
			t.Fatalf("no Accept runs: %v", err)
		}
	}
}

// TestAbandonedDialsLeaveThePort checks that a Dial whose context ended waits at no port any more,
// keeps no memory at either end, and is never accepted, whether its host has another link to the
// listener or not. A dialer that waits longer is accepted at once.
func TestAbandonedDialsLeaveThePort(t *testing.T) {
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprintf("another link %t", other), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				a, b := n.host(1, nil), n.host(2, nil)
				var kept []*Link
				if other {
					out, in := join(t, b, a, "back", nil, &Options{Buffers: 2, Size: 8})
					kept = append(kept, out, in)
				}
				p, err := b.Listen("frames", &Options{Buffers: 2, Size: 8})
				if err != nil {
					t.Fatal(err)
				}
				giveUpDials(t, a, 1100, 3*time.Millisecond)
				time.Sleep(10 * time.Millisecond)
				if w := b.waitingAtPort(); w != 0 {
					t.Errorf("%d wait, although none does", w)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				dialed := make(chan *Link, 1)
				go func() {
					l, err := a.Dial(ctx, at(2), "frames", nil)
					if err != nil {
						t.Errorf("a patient Dial: %v", err)
					}
					dialed <- l
				}()
				in, err := p.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				out := <-dialed
				if out == nil {
					t.FailNow()
				}
				if err := echo(ctx, out, in, 3); err != nil {
					t.Error(err)
				}
				for _, l := range append(kept, out, in) {
					l.Close()
				}
				time.Sleep(time.Second)
				if s := b.Stats(); s.Made != uint64(1+len(kept)/2) {
					t.Errorf("%d links were made at the listener", s.Made)
				}
				nothingLeft(t, a, b)
			})
		})
	}
}

// TestAcceptPassesOverTheAbandoned checks that Accept, called when all dialers have given up, waits
// for one that has not.
func TestAcceptPassesOverTheAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		cfg := &Config{Endpoint: dgrdma.Config{GiveUp: 2 * time.Second}}
		a, b := n.host(1, cfg), n.host(2, cfg)
		p, err := b.Listen("frames", nil)
		if err != nil {
			t.Fatal(err)
		}
		giveUpDials(t, a, 3, 100*time.Millisecond)
		time.Sleep(time.Millisecond) // until the last one is cancelled
		if l, err := p.Accept(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("accepted a link that is %v, %v", l.Err(), err)
		}
	})
}

// TestDialOfALifeBefore checks that a pending dial is dropped when its dialer begins a new life, or
// the listener resets the connection, and that the next one makes a link.
func TestDialOfALifeBefore(t *testing.T) {
	for _, c := range []struct {
		name  string
		again func(n *net, a, b *Host) *Host
	}{
		{"restarted", func(n *net, a, _ *Host) *Host { a.Close(); return n.host(1, nil) }},
		{"reset", func(_ *net, a, b *Host) *Host { b.ep.Conns()[0].Reset(0); return a }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 4)
				a, b := n.host(1, nil), n.host(2, nil)
				p, err := b.Listen("frames", &Options{Buffers: 2, Size: 8})
				if err != nil {
					t.Fatal(err)
				}
				go dial(soon(t), a, 2, "frames", nil)
				time.Sleep(10 * time.Millisecond)
				a = c.again(n, a, b)
				dialed := make(chan *Link, 1)
				go func() {
					l, err := a.Dial(t.Context(), at(2), "frames", nil)
					if err != nil {
						t.Error(err)
					}
					dialed <- l
				}()
				time.Sleep(time.Second)
				// The life before may be named for half of GiveUp, 5 s, if something was posted to it.
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				in, err := p.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				out := <-dialed
				if out == nil {
					t.FailNow()
				}
				if err := errors.Join(echo(soon(t), out, in, 1), out.Close(), in.Close()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				nothingLeft(t, a, b)
			})
		})
	}
}

// TestDialOfADeadPeer checks that a pending dial of a peer that is gone is noticed within one and a
// half times the GiveUp, though no Accept runs, and leaves its place to others.
func TestDialOfADeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		if _, err := b.Listen("frames", nil); err != nil {
			t.Fatal(err)
		}
		go a.Dial(t.Context(), at(2), "frames", nil)
		time.Sleep(time.Millisecond)
		if w := b.waitingAtPort(); w != 1 {
			t.Errorf("%d wait", w)
		}
		for _, way := range [][2]uint32{{1, 2}, {2, 1}} {
			n.sim.Link(simnet.Addr(way[0]), simnet.Addr(way[1]), simnet.Link{Loss: 1})
		}
		time.Sleep(b.ep.GiveUp() * 3 / 2)
		if w := b.waitingAtPort(); w != 0 {
			t.Errorf("%d wait of a host that is no more", w)
		}
	})
}

// TestDialWhileTheConnectionIsAbandoned checks that a Dial at the moment in which the connection is
// abandoned, because the peer never answered, gets another one.
func TestDialWhileTheConnectionIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		b.serve(t, "port", nil)
		c, err := a.connect(t.Context(), at(2))
		if err != nil {
			t.Fatal(err)
		}
		p := a.peerOf(c)
		p.abandoned = true // its connection is about to be closed
		l, err := a.Dial(soon(t), at(2), "port", nil)
		if err != nil || l.Peer() == c || c.Err() == nil {
			t.Errorf("%v", err)
		}
	})
}

// TestCancelledAcceptWakesAnother checks that an Accept that was woken and whose context is done
// leaves the link to another one.
func TestCancelledAcceptWakesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		p, err := b.Listen("port", nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { _, err := a.Dial(soon(t), at(2), "port", nil); ended <- err }()
		time.Sleep(time.Millisecond)
		<-p.pending.more // by an Accept that is woken, and
		done, cancel := context.WithCancel(t.Context())
		cancel()
		p.Accept(done) // is to take nothing any more
		if len(p.pending.more) != 1 {
			t.Error("the other Accept is not woken")
		}
		if _, err := p.Accept(soon(t)); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
