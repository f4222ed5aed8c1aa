package dgrdma

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// lentGate is a wire that holds up every Send with lent bytes while it is armed, and whose Recv can fail.
type lentGate struct {
	transport.Conn
	armed  atomic.Bool
	holds  chan []transport.Outgoing
	goOn   chan struct{}
	broken atomic.Bool
}

func (g *lentGate) Send(b []transport.Outgoing) (int, error) {
	lent := 0
	for i := range b {
		lent += len(b[i].Rest)
	}
	if lent > 0 && g.armed.Load() {
		g.holds <- b
		<-g.goOn
	}
	return g.Conn.Send(b)
}

var errGate = errors.New("the wire is gone")

func (g *lentGate) Recv(d []transport.Datagram, wait time.Duration) (int, error) {
	if g.broken.Load() {
		return 0, errGate
	}
	return g.Conn.Recv(d, wait)
}

// manualOver opens an endpoint without goroutines on a wire, connected to one whose memory it has
// written into.
func manualOver(t *testing.T, net *simnet.Network, wire transport.Conn) (a *Endpoint, c *Conn) {
	t.Helper()
	memory, _ := NewRegion(1 << 20)
	b, err := New(net.Attach(addrB, simnet.Config{MTU: 9000}), &Config{ID: 2, Memory: memory, AcceptAny: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	a, err = New(wire, &Config{ID: 1, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	c, err = a.Connect(Peer{ID: 2, Addr: addrB, Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), write(64, pattern(1, 100), 0, 1)); err != nil {
		t.Fatal(err)
	}
	return a, c
}

// TestWriteReturnsWhileItsBytesAreSent checks that Write of an endpoint with Manual, whose
// transport fails to receive while another goroutine sends, does not return before its bytes have
// left.
func TestWriteReturnsWhileItsBytesAreSent(t *testing.T) {
	net := simnet.New(1)
	t.Cleanup(func() { net.Close() })
	wire := &lentGate{Conn: net.Attach(addrA, simnet.Config{MTU: 9000}), holds: make(chan []transport.Outgoing), goOn: make(chan struct{})}
	_, c := manualOver(t, net, wire)
	wire.armed.Store(true)
	var posts sync.WaitGroup
	posts.Add(1)
	go func() { // sends what it posts, and what others post in that time
		defer posts.Done()
		if err := c.Post(write(64, pattern(2, 30_000), 0, 1)); err != nil {
			t.Error(err)
		}
	}()
	<-wire.holds
	data := bytes.Repeat([]byte{7}, 30_000)
	wrote := make(chan error, 1)
	go func() { wrote <- c.Write(t.Context(), write(1<<17, data, 0, 1)) }()
	for c.Stats().Queued < 2 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // it waits, and receives in that time
	wire.goOn <- struct{}{}
	batch := <-wire.holds // with data in it
	mine := 0
	for _, o := range batch {
		if len(o.Rest) > 0 && o.Rest[0] == 7 {
			mine += len(o.Rest)
		}
	}
	wire.broken.Store(true)
	select {
	case err := <-wrote:
		t.Errorf("Write returned %q while %d of its bytes were being sent", err, mine)
	case <-time.After(100 * time.Millisecond):
	}
	wire.armed.Store(false)
	wire.goOn <- struct{}{}
	posts.Wait()
	if err := <-wrote; !errors.Is(err, errGate) || mine == 0 {
		t.Errorf("Write returned %v, %d of its bytes were in the batch", err, mine)
	}
}

// slowFailure is a wire whose Recv fails, some time after it is told to.
type slowFailure struct {
	transport.Conn
	hold  atomic.Bool
	fails chan struct{}
}

func (f *slowFailure) Recv(d []transport.Datagram, wait time.Duration) (int, error) {
	if f.hold.Load() {
		<-f.fails
		return 0, errGate
	}
	return f.Conn.Recv(d, wait)
}

// TestWriteWaitsWhileTheTransportBreaks checks that Write waits for its answer while its transaction is in use, when the transport broke: a
// goroutine that drives finds the transport broken and answers what is pending, first with a Done that takes its time, and the context of
// another Write ends in that time.
func TestWriteWaitsWhileTheTransportBreaks(t *testing.T) {
	net := simnet.New(1)
	t.Cleanup(func() { net.Close() })
	wire := &slowFailure{Conn: net.Attach(addrA, simnet.Config{}), fails: make(chan struct{})}
	a, c := manualOver(t, net, wire)
	net.Link(addrA, addrB, simnet.Link{Loss: 1})
	slow := write(64, pattern(1, 100), 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow.Done = func(*Transaction, error) {
		cancel()
		time.Sleep(100 * time.Millisecond)
	}
	if err := c.Post(slow); err != nil {
		t.Fatal(err)
	}
	wire.hold.Store(true) // X has the receive lock
	x := make(chan error)
	go func() {
		for {
			if _, err := a.Progress(100 * time.Millisecond); err != nil {
				x <- err
				return
			}
		}
	}()
	time.Sleep(20 * time.Millisecond)
	mine := write(64, pattern(1, 100), 0, 1)
	go func() {
		for c.Stats().Queued < 2 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond) // it waits
		close(wire.fails)
	}()
	err := c.Write(ctx, mine)
	posted := mine.posted // the poster's again
	if !errors.Is(err, errGate) || posted {
		t.Errorf("Write returned %v, and its transaction is in use: %v", err, posted)
	}
	if err := <-x; !errors.Is(err, errGate) {
		t.Error(err)
	}
}
