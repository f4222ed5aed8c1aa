package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestRDMAEndWithoutReceives checks that a connection ends whose queue pair has ended when no receive was posted: nothing completes then
// that tells of the end.
func TestRDMAEndWithoutReceives(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	p := dialPeer(t, address, 8)
	c := onlyConn(t, s)
	takeTurn(c.rdmaConn)
	p.send(1, 0, rpcrdma.Header{}, nil)
	p.send(2, 0, rpcrdma.Header{}, nil)
	waitInbox(c.rdmaConn, 2)
	p.qp.Abort()
	<-c.qp.Done()
	c.run()
	within(t, "the connection", func() { <-c.rdmaConn.done })
}

// TestRDMACloseSendsWhatIsPosted checks that a reply which was given before a server closes its connection gets to the client whole: what is posted goes before the end.
func TestRDMACloseSendsWhatIsPosted(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		h := &service{}
		s, address := serveRDMA(t, h, so)
		const length = 1 << 20
		for range 4 { // each closes its connection
			b := dial(t, address, co).Bind(testProgram, None)
			entered, hold := make(chan struct{}), make(chan struct{})
			h.backBy(func(ctx context.Context, c *Call) error {
				close(entered)
				<-hold
				return c.Reply(&data{b: c.Buffer(length)})
			})
			var got data
			done := begin(func() error {
				return b.Call(t.Context(), procBack, nil, &got, &CallOptions{Into: make([]byte, length)})
			})
			<-entered
			c := onlyConn(t, s)
			takeTurn(c.rdmaConn)
			close(hold)
			waitInbox(c.rdmaConn, 1)
			c.rdmaConn.close(errEvicted)
			c.run()
			within(t, "the call", func() {
				if err := <-done; err != nil || len(got.b) != length {
					t.Errorf("%d octets, %v", len(got.b), err)
				}
			})
			within(t, "the connection", func() { <-c.rdmaConn.done })
		}
	})
}

// TestRDMACloseUnderLock checks that a client can close a connection while it holds its lock, and a reply waits for the turn.
func TestRDMACloseUnderLock(t *testing.T) {
	h := &service{entered: make(chan struct{}), hold: make(chan struct{})}
	_, address := serveRDMA(t, h, nil)
	client := dial(t, address, &ClientOptions{Versions: V1, Timeout: -1})
	b := client.Bind(testProgram, None)
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	client.mu.Lock()
	c := client.carrier.(*rdmaClient)
	client.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- b.Call(t.Context(), procAdd, num(1), nil, nil) }()
	<-h.entered
	takeTurn(c.rdmaConn)
	close(h.hold) // the reply comes only now
	waitInbox(c.rdmaConn, 1)
	within(t, "close", func() {
		client.mu.Lock()
		leaveTurn(c.rdmaConn)
		client.carrier.close(errSilent)
		client.mu.Unlock()
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRDMAClosedWhileConnecting checks that a connection that is there only after its client was closed ends.
func TestRDMAClosedWhileConnecting(t *testing.T) {
	_, address := serveRDMA(t, &service{}, nil)
	host, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	client := dial(t, address, &ClientOptions{Host: host})
	s, err := client.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	client.connected(s)
	qp := s.(*rdmaClient).qp
	within(t, "the queue pair", func() { <-qp.Done() })
	if err := qp.Err(); !errors.Is(err, ErrClosed) {
		t.Errorf("the server ended it: %v", err)
	}
}

// TestRDMALateCalls checks that calls that a connection is given after its end are sent over the next one.
func TestRDMALateCalls(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	client := dial(t, address, nil)
	b := client.Bind(testProgram, None)
	for range 20 {
		if err := b.Call(t.Context(), procAdd, num(1), num(0), nil); err != nil {
			t.Fatal(err)
		}
		server := onlyConn(t, s)
		client.mu.Lock()
		client.attempts = 0
		conn := client.carrier.(*rdmaClient)
		server.close(errEvicted)
		<-conn.done // and client.lost waits for the lock
		call := newClientCall().(*clientCall)
		call.procedure = &testProgram.Procedures[0]
		call.enc.Reset(append([]byte(nil), b.header...))
		call.out.inline = call.enc.Bytes()
		client.xid++
		call.xid = client.xid
		client.xid++
		binary.BigEndian.PutUint32(call.out.inline, call.xid)
		client.calls[call.xid] = call
		client.submit(call)
		client.mu.Unlock()
		conn.flush(call)
		within(t, "the call", func() { <-call.done })
		if call.err != nil {
			t.Fatal(call.err)
		}
		call.carrier.withdraw(call)
	}
}

// TestRDMAEnds checks that each call ends once, and soon, however connections end while calls are made, and that calls go on
// afterwards. All memory of the server's budget is back at the end.
func TestRDMAEnds(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		s, address := serveRDMA(t, &service{}, so)
		whole := s.budget.left
		co.Resend = true
		client := dial(t, address, co)
		b := client.Bind(testProgram, None)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for g := range 16 {
			all.Go(func() {
				item := make([]byte, 20000*(g%3))
				for ctx.Err() == nil {
					err := b.Call(ctx, procEcho, &data{b: item}, &data{}, &CallOptions{Into: make([]byte, 40000), Direct: g%2 == 0})
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
						return
					}
				}
			})
		}
		for i := range 6 {
			time.Sleep(50 * time.Millisecond)
			client.mu.Lock()
			c, _ := client.carrier.(*rdmaClient)
			client.attempts, client.attempted = 0, time.Time{}
			client.mu.Unlock()
			if c == nil {
				continue
			}
			switch i % 3 {
			case 0:
				c.qp.Abort()
			case 1:
				onlyConn(t, s).close(errEvicted)
			case 2:
				onlyConn(t, s).qp.Abort()
			}
		}
		cancel()
		within(t, "calls", all.Wait)
		within(t, "the client", func() { client.Close() })
		within(t, "the server", func() { s.Close() })
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		if s.budget.left != whole {
			t.Errorf("%d octets of the budget are left, of %d", s.budget.left, whole)
		}
	})
}
