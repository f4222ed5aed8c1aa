package link

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// lingers is a wire that keeps who sends bytes from where they are, after these have left.
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

// TestFlushHearsBehindTheGoodbye: what the peer acknowledged before it said goodbye has arrived,
// also where that is told later, as it is while the transport still has the bytes.
func TestFlushHearsBehindTheGoodbye(t *testing.T) {
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
	left := make(chan error, 1)
	go func() {
		_, err := in.In.Recv(t.Context())
		in.Peer().Close()
		left <- err
	}()
	sent := make(chan error, 1)
	go func() { sent <- out.Out.Send(t.Context(), 0, make([]byte, 20_000)) }()
	<-out.Peer().Done()
	if err := <-left; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// Flush takes turns with Send, which may be the one that sends.
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
}
