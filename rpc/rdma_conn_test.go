package rpc

import (
	"context"
	"encoding/binary"
	"runtime"
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
		n := len(s.conns)
		for c := range s.conns {
			c := c.(*rdmaServer)
			c.life.Lock()
			is := n == 1 && c.ready && c.closed == nil
			c.life.Unlock()
			if is {
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
