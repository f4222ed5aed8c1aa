package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// rdmaPeer is a client that sends what a test says, and answers nothing by itself.
type rdmaPeer struct {
	t  *testing.T
	qp *verbs.QueuePair
}

// dialPeer dials a server of the test.
func dialPeer(t *testing.T, address string, receives int) *rdmaPeer {
	t.Helper()
	host, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	return &rdmaPeer{t, dialWith(t, host, address, receives)}
}

func dialWith(t *testing.T, host *verbs.Host, address string, receives int) *verbs.QueuePair {
	t.Helper()
	_, posted := receiveBuffers(receives, rdmaSize)
	qp, err := host.Dial(context.Background(), "tcp:"+address[len("rdma:"):], &verbs.Options{
		Posted: posted, Private: (&rpcrdma.Private{SendSize: rdmaSize, ReceiveSize: rdmaSize}).Append(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(qp.Abort)
	return qp
}

// call returns a call of the test program.
func (p *rdmaPeer) call(xid, procedure uint32, args func(e *xdr.Encoder)) []byte {
	c := callHeader{program: testProgram.Number, version: testProgram.Version}
	var e xdr.Encoder
	c.append(&e)
	if args != nil {
		args(&e)
	}
	b := e.Bytes()
	binary.BigEndian.PutUint32(b, xid)
	binary.BigEndian.PutUint32(b[atProcedure:], procedure)
	return b
}

// send sends a call by version 1.
func (p *rdmaPeer) send(xid, procedure uint32, h rpcrdma.Header, args func(e *xdr.Encoder)) {
	p.t.Helper()
	h.XID, h.Version, h.Credit = xid, rpcrdma.Version1, 64
	m := append(h.Append(nil), p.call(xid, procedure, args)...)
	if err := p.qp.Post(&verbs.Work{Op: verbs.OpSend, Data: m}); err != nil {
		p.t.Fatal(err)
	}
}

// onlyConn waits for the connection of a server that has one, and returns it when its queue pair is there.
func onlyConn(t *testing.T, s *Server) *rdmaServer {
	t.Helper()
	for range 2000 {
		s.mu.Lock()
		for c := range s.conns {
			c := c.(*rdmaServer)
			c.life.Lock()
			ready := c.ready
			c.life.Unlock()
			if ready {
				s.mu.Unlock()
				return c
			}
		}
		s.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("there is no connection")
	return nil
}

// within fails the test if f does not return in time.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		b := make([]byte, 1<<20)
		t.Fatalf("%s does not end\n%s", what, b[:runtime.Stack(b, true)])
	}
}

// takeTurn takes the turn of a connection as soon as it is free, so that what comes waits.
func takeTurn(c *rdmaConn) {
	for {
		c.mu.Lock()
		mine := !c.taken && len(c.inbox) == 0
		c.taken = c.taken || mine
		c.mu.Unlock()
		if mine {
			return
		}
		runtime.Gosched()
	}
}

// leaveTurn gives it back without looking at what came.
func leaveTurn(c *rdmaConn) {
	c.mu.Lock()
	c.taken = false
	c.mu.Unlock()
}

// waitInbox waits until n events wait.
func waitInbox(c *rdmaConn, n int) {
	for {
		c.mu.Lock()
		there := len(c.inbox) >= n
		c.mu.Unlock()
		if there {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRDMAEndWithoutReceives checks that a connection ends whose queue pair has ended when no receive was posted: nothing completes then
// that tells of the end.
func TestRDMAEndWithoutReceives(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	p := dialPeer(t, address, 8)
	c := onlyConn(t, s)
	takeTurn(&c.rdmaConn)
	p.send(1, 0, rpcrdma.Header{}, nil)
	p.send(2, 0, rpcrdma.Header{}, nil)
	waitInbox(&c.rdmaConn, 2)
	p.qp.Abort()
	<-c.qp.Done()
	c.run()
	within(t, "the connection", func() { <-c.rdmaConn.done })
}

// TestRDMACloseUnderLock checks that a client can close a connection while it holds its lock, and a reply waits for the turn.
func TestRDMACloseUnderLock(t *testing.T) {
	_, address := serveRDMA(t, &service{}, nil)
	client := dial(t, address, &ClientOptions{Versions: V1, Timeout: -1})
	b := client.Bind(testProgram, None)
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	client.mu.Lock()
	c := client.carrier.(*rdmaClient)
	client.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- b.Call(t.Context(), procSleep, num(100), nil, nil) }()
	for {
		client.mu.Lock()
		n := len(client.calls)
		client.mu.Unlock()
		if n == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // the call is out
	takeTurn(&c.rdmaConn)
	waitInbox(&c.rdmaConn, 1)
	within(t, "close", func() {
		client.mu.Lock()
		leaveTurn(&c.rdmaConn)
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
		client.mu.Lock()
		client.attempts = 0
		conn := client.carrier.(*rdmaClient)
		client.mu.Unlock()
		onlyConn(t, s).close(errEvicted)
		client.mu.Lock()
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
		conn.flush()
		within(t, "the call", func() { <-call.done })
		if call.err != nil {
			t.Fatal(call.err)
		}
		call.carrier.withdraw(call)
	}
}

// TestRDMATransport checks that the first call of a connection knows its transport already.
func TestRDMATransport(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		_, address := serveRDMA(t, &service{}, so)
		for range 20 {
			c := dial(t, address, co)
			var who data
			if err := c.Bind(testProgram, None).Call(t.Context(), procWhoami, nil, &who, nil); err != nil || who.after != transport {
				t.Errorf("transport %q, want %q: %v", who.after, transport, err)
			}
			c.Close()
		}
	})
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
