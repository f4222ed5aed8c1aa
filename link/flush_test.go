package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// lingers is a wire whose Send blocks after it has sent bytes that stay the caller's.
type lingers struct {
	transport.Conn
	goOn chan struct{}
}

func (w *lingers) Send(batch []transport.Outgoing) (int, error) {
	n, err := w.Conn.Send(batch)
	for i := range batch {
		if len(batch[i].Rest) > 0 {
			<-w.goOn
			break
		}
	}
	return n, err
}

// TestFlushAfterTheDisconnect checks that what the peer acknowledged before it disconnected has
// arrived, also while a Send that blocks still has the bytes, in which the disconnect is heard (N1).
func TestFlushAfterTheDisconnect(t *testing.T) {
	for range 20 { // which goroutine runs first is left to chance
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, 1)
			wire := &lingers{goOn: make(chan struct{})}
			open := func(id uint16, over func(transport.Conn) transport.Conn) *Host {
				h, err := Open("", &Config{
					Memory:   1 << 20,
					Endpoint: dgrdma.Config{ID: dgrdma.EndpointID(id)},
					Open: func(e *dgrdma.Config) (*dgrdma.Endpoint, error) {
						return dgrdma.New(over(n.sim.Attach(simnet.Addr(uint32(id)), simnet.Config{MTU: 9000})), e)
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { h.Close() })
				return h
			}
			a := open(1, func(c transport.Conn) transport.Conn { wire.Conn = c; return wire })
			b := open(2, func(c transport.Conn) transport.Conn { return c })
			out, in := join(t, a, b, "port", nil, &Options{Buffers: 2, Size: 1 << 15})
			time.Sleep(time.Second) // until nothing comes any more: the receive goroutine could be the one that sends
			left := make(chan error, 1)
			go func() {
				_, err := in.In.Recv(t.Context())
				in.Peer().Close()
				left <- err
			}()
			sent := make(chan error, 1)
			go func() { sent <- out.Out.Send(t.Context(), 0, make([]byte, 20_000)) }()
			began := time.Now()
			select {
			case <-out.Peer().Done():
			case <-time.After(time.Minute):
				t.Error("the disconnect is not heard while Send blocks")
			}
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("the disconnect is heard after %v", took)
			}
			if err := <-left; err != nil {
				t.Error(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			// Flush takes the send token, which Send may have.
			if err := out.Out.flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while the transport has the bytes: %v", err)
			}
			close(wire.goOn)
			if err := <-sent; err != nil {
				t.Error(err)
			}
			if err := out.Out.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			if err := out.Peer().Err(); !errors.Is(err, dgrdma.ErrPeerClosed) {
				t.Errorf("the connection: %v", err)
			}
		})
	}
}
