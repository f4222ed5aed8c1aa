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

// TestHelperSeesItsEnd: who waits for a link and does its host's work meanwhile sees
// its context, the link's end and the connection's at once, though datagrams that
// are none of its business never stop (attack A1, SECURITY.md).
func TestHelperSeesItsEnd(t *testing.T) {
	type world struct {
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
			w.out.host.Close() // nobody acknowledges
			return errors.Join(w.in.Out.Send(w.ctx, 0, nil), w.in.Out.Flush(w.ctx))
		}, nil, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1) // host 2 helps
				both := &Options{Directions: Both, Buffers: 4, Size: 10}
				_, _, out, in := pair(t, n, both, both)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				if c.end == nil {
					ctx, cancel = context.WithTimeout(context.Background(), after)
				}
				defer cancel()
				w := &world{out, in, ctx}
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
