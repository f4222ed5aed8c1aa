package rpc

import (
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// deafConn is a connection whose owner can stop to read it.
type deafConn struct {
	net.Conn
	deaf chan struct{} // closed: what comes is not read
	gone chan struct{}
	once sync.Once
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.deaf:
		<-c.gone
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// dialDeaf dials a server of the test, and has it wait for the answers to its Reads.
func dialDeaf(t *testing.T, address string) *rdmaPeer {
	t.Helper()
	host, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	nc, err := net.Dial("tcp", address[len("rdma:"):])
	if err != nil {
		t.Fatal(err)
	}
	deaf := &deafConn{Conn: nc, deaf: make(chan struct{}), gone: make(chan struct{})}
	_, posted := receiveBuffers(4, rdmaSize)
	qp, err := host.Connect(context.Background(), deaf, &verbs.Options{Posted: posted})
	if err != nil {
		t.Fatal(err)
	}
	close(deaf.deaf)
	t.Cleanup(qp.Abort)
	return &rdmaPeer{t, qp}
}

// echo sends an ECHO whose item is in a Read chunk of n octets.
func (p *rdmaPeer) echo(xid uint32, n int) {
	p.t.Helper()
	position := uint32(len(p.call(xid, procEcho, nil)) + 8)
	h := rpcrdma.Header{Reads: []rpcrdma.ReadChunk{{Position: position, Segments: rpcrdma.Chunk{{Handle: 1, Length: uint32(n)}}}}}
	p.send(xid, procEcho, h, func(e *xdr.Encoder) {
		e.Uint32(7)
		e.Uint32(uint32(n))
		e.String("after")
	})
}

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 4000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: that does not come about", what)
}

// state returns how much of a budget is left, and how many shares wait.
func (b *budget) state() (left, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.turn {
		waiting += len(h.waiting)
	}
	return b.left, waiting
}

// TestRDMABudget checks that peers which do not answer Reads hold no more memory than the server has for all, that a connection that waits for it and
// ends gives back nothing that it did not have, and that others are served during that time and afterwards.
func TestRDMABudget(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	const whole = 400000
	s.budget.left = whole
	first := dialDeaf(t, address)
	first.echo(1, 150000)
	waitFor(t, "the first call holds memory", func() bool { left, _ := s.budget.state(); return left == 250000 })
	second := dialDeaf(t, address)
	second.echo(1, 150000)
	waitFor(t, "the second call waits", func() bool { _, waiting := s.budget.state(); return waiting == 1 })
	third := dialDeaf(t, address)
	third.echo(1, 180000)
	waitFor(t, "the third call waits", func() bool { _, waiting := s.budget.state(); return waiting == 2 })
	b := dial(t, address, nil).Bind(testProgram, None)
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	third.qp.Abort()
	waitFor(t, "the third connection ends", func() bool { return s.Stats().Connections == 3 })
	if left, waiting := s.budget.state(); left != 250000 || waiting != 1 {
		t.Errorf("%d octets are left, %d calls wait", left, waiting)
	}
	second.qp.Abort()
	waitFor(t, "the second connection ends", func() bool { return s.Stats().Connections == 2 })
	var out data
	o := &CallOptions{Into: make([]byte, 40000)}
	if err := b.Call(t.Context(), procEcho, &data{b: make([]byte, 40000)}, &out, o); err != nil || len(out.b) != 40000 {
		t.Error(err)
	}
	first.qp.Abort()
	waitFor(t, "all memory is back", func() bool { left, _ := s.budget.state(); return left == whole })
}

// TestRDMABudgetIsGranted checks that calls that wait for memory are carried out when there is some.
func TestRDMABudgetIsGranted(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		s, address := serveRDMA(t, &service{}, so)
		const whole = 100000
		s.budget.left = whole
		var all sync.WaitGroup
		for range 4 {
			b := dial(t, address, co).Bind(testProgram, None)
			for range 4 {
				all.Go(func() {
					for range 10 {
						var out data
						o := &CallOptions{Into: make([]byte, 60000), Direct: true}
						if err := b.Call(t.Context(), procEcho, &data{b: make([]byte, 60000)}, &out, o); err != nil || len(out.b) != 60000 {
							t.Error(err)
						}
					}
				})
			}
		}
		within(t, "calls", all.Wait)
		waitFor(t, "all memory is back", func() bool { left, _ := s.budget.state(); return left == whole })
	})
}

// TestRDMAFetchingIsNotIdle checks that a connection is not closed for another one while a call comes.
func TestRDMAFetchingIsNotIdle(t *testing.T) {
	s, address := serveRDMA(t, &service{}, &ServerOptions{Connections: 1})
	p := dialDeaf(t, address)
	p.echo(1, 150000)
	c := onlyConn(t, s)
	waitFor(t, "the call comes", func() bool {
		c.life.Lock()
		defer c.life.Unlock()
		return c.fetching == 1
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if other, err := Dial(ctx, address, nil); err == nil {
		other.Close()
		t.Error("the connection was closed for another one")
	}
	if n := s.Stats(); n.Evicted != 0 || n.Refused != 1 {
		t.Errorf("%d connections were closed, %d refused", n.Evicted, n.Refused)
	}
}

// TestRDMASilentClients checks that connections over which nothing has come cost little, and that others are served as well.
func TestRDMASilentClients(t *testing.T) {
	s, address := serveRDMA(t, &service{}, nil)
	b := dial(t, address, nil).Bind(testProgram, None)
	host, err := verbs.Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 200
	for range n {
		dialWith(t, host, address, 1)
	}
	waitFor(t, "all connections are there", func() bool { return s.Stats().Connections == n+1 })
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse) / n / 1024
	t.Logf("%.0f KiB for each connection, both sides", used)
	if used > 600 {
		t.Errorf("each connection takes %.0f KiB", used)
	}
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// TestRDMACreditsIgnored checks that a client that sends more calls than it was granted loses its connection, and no other client
// notices.
func TestRDMACreditsIgnored(t *testing.T) {
	h := &service{entered: make(chan struct{}, 100), hold: make(chan struct{})}
	s, address := serveRDMA(t, h, nil)
	defer close(h.hold)
	b := dial(t, address, nil).Bind(testProgram, None)
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	p := dialPeer(t, address, 100)
	for xid := range uint32(100) {
		h := rpcrdma.Header{XID: xid, Version: rpcrdma.Version1, Credit: 64}
		m := append(h.Append(nil), p.call(xid, procAdd, func(e *xdr.Encoder) { e.Uint32(1) })...)
		if p.qp.Post(&verbs.Work{Op: verbs.OpSend, Data: m}) != nil {
			break // the server has ended it
		}
	}
	waitFor(t, "the connection ends", func() bool {
		select {
		case <-p.qp.Done():
			return true
		default:
			return false
		}
	})
	if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
		t.Error(err)
	}
	if n := s.Stats().Calls; n > 2+64 {
		t.Errorf("%d calls were taken", n)
	}
}

// TestRDMADuplicates checks that a call that comes again over another connection is carried out once: while it is in work, and afterwards.
func TestRDMADuplicates(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		h := &service{entered: make(chan struct{}, 8), hold: make(chan struct{})}
		s, address := serveRDMA(t, h, so)
		co.Resend = true
		c := dial(t, address, co)
		b := c.Bind(testProgram, None)
		if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		sum := num(5)
		added := func() int {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.sum
		}
		done := make(chan error, 1)
		go func() { done <- b.Call(t.Context(), procAdd, num(5), sum, nil) }()
		<-h.entered
		onlyConn(t, s).qp.Abort()
		waitFor(t, "the call comes again", func() bool { return s.Stats().Duplicates == 1 })
		close(h.hold)
		if err := <-done; err != nil || *sum != 5 || added() != 5 {
			t.Errorf("the sum is %d, at the server %d: %v", *sum, added(), err)
		}
		// The connection ends when the next one is in work, or answered.
		c.mu.Lock()
		conn := c.carrier.(*rdmaClient)
		c.attempts = 0
		c.mu.Unlock()
		server := onlyConn(t, s)
		takeTurn(server.rdmaConn)
		go func() { done <- b.Call(t.Context(), procAdd, num(7), sum, nil) }()
		waitInbox(server.rdmaConn, 1)
		aborted := make(chan struct{})
		go func() {
			defer close(aborted)
			<-h.entered
			conn.qp.Abort()
		}()
		server.run()
		<-aborted
		if err := <-done; err != nil || *sum != 12 || added() != 12 {
			t.Errorf("the sum is %d, at the server %d: %v", *sum, added(), err)
		}
	})
}
