package link

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestPollerSeesItsEnd checks that a goroutine that waits for a link, and polls for its host in that
// time, sees at once its context's end, the link's and the connection's. Datagrams that are not for it
// never stop (attack A1, SECURITY.md).
func TestPollerSeesItsEnd(t *testing.T) {
	type world struct {
		n       *net
		out, in *Link
		ctx     context.Context
	}
	recv := func(w *world) error { _, err := w.in.In.Recv(w.ctx); return err }
	const after = 50 * time.Millisecond
	for _, c := range []struct {
		name string
		wait func(w *world) error
		end  func(w *world)
		want error
	}{
		{"context of a consumer", recv, nil, context.DeadlineExceeded},
		{"link of a consumer", recv, func(w *world) { w.in.fail(ErrProtocol) }, ErrProtocol},
		{"connection of a consumer", recv, func(w *world) { w.in.Peer().Close() }, ErrClosed},
		{"context of a producer", func(w *world) (err error) {
			for err == nil {
				err = w.in.Out.Send(w.ctx, 0, nil)
			}
			return err
		}, nil, context.DeadlineExceeded},
		{"context of a flush", func(w *world) error {
			w.n.withoutPeers(1, w.out.host.ep.Close) // the peer gets no acknowledgement
			return errors.Join(w.in.Out.Send(w.ctx, 0, nil), w.in.Out.Flush(w.ctx))
		}, nil, context.DeadlineExceeded},
		{"connection of a flush", func(w *world) error {
			w.n.withoutPeers(1, w.out.host.ep.Close)
			return errors.Join(w.in.Out.Send(w.ctx, 0, nil), w.in.Out.Flush(w.ctx))
		}, func(w *world) { w.in.Peer().Close() }, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1) // callers of host 2 poll
				both := &Options{Directions: Both, Buffers: 4, Size: 10}
				_, _, out, in := pair(t, n, both, both)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				if c.end == nil {
					ctx, cancel = context.WithTimeout(context.Background(), after)
				}
				defer cancel()
				w := &world{n, out, in, ctx}
				junk := n.sim.Attach(simnet.Addr(9), simnet.Config{})
				to := simnet.Addr(2)
				var noise sync.WaitGroup
				defer noise.Wait()
				noise.Go(func() {
					for range 1000 {
						time.Sleep(time.Millisecond)
						junk.Send([]transport.Outgoing{{To: &to, Buf: make([]byte, 10)}})
					}
				})
				began := time.Now()
				if c.end != nil {
					time.AfterFunc(after, func() { c.end(w) })
				}
				err := c.wait(w)
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if took := time.Since(began); took < after || took > after+5*time.Millisecond {
					t.Errorf("it took %v, want %v", took, after)
				}
			})
		})
	}
}

// TestDownOrDone checks that the end of a link wins over a context that is done in a wait for what the
// peer sends, and not in a wait for what is in flight.
func TestDownOrDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		both := &Options{Directions: Both, Buffers: 4, Size: 10}
		_, _, out, _ := pair(t, n, both, both)
		n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1})
		if err := out.Out.Send(soon(t), 0, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		received, flushed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := out.In.Recv(ctx); received <- err }()
		go func() { flushed <- out.Out.Flush(ctx) }()
		synctest.Wait()
		out.fail(ErrProtocol)
		cancel()
		if err := <-received; !errors.Is(err, ErrProtocol) {
			t.Errorf("receiving: %v", err)
		}
		if err := <-flushed; !errors.Is(err, context.Canceled) {
			t.Errorf("flushing: %v", err)
		}
	})
}

// TestAcceptEnds checks that Accept waits no longer than its context, and no longer than the port is
// there.
func TestAcceptEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := newNet(t, 1).host(1, nil).Listen("port", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := p.Accept(soon(t)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { p.Close() })
		if _, err := p.Accept(t.Context()); !errors.Is(err, ErrClosed) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// never is a condition that is never met.
type never struct{}

func (never) isReady() bool { return false }

// TestGoneIsSaid checks that a wait that the end of a connection ends fails with the connection's
// error, whatever it waits for.
func TestGoneIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, _ := pair(t, newNet(t, 1), nil, nil)
		time.AfterFunc(time.Second, func() { out.Peer().Close() })
		if err := out.Out.waiting.until(t.Context(), out, out.down, never{}); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}
