package rpc

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// handPeer is an end of a connection over RDMA whose messages a test makes and takes.
type handPeer struct {
	t        *testing.T
	host     *verbs.Host
	qp       *verbs.QueuePair
	cq       *verbs.CompletionQueue
	receives [][]byte // in order
	version  uint32
	credit   uint32 // what is sent where a header has none
}

// handOptions are those of a queue pair with so many receives, each of 8 KiB.
func handOptions(receives int) (*handPeer, *verbs.Options) {
	p := &handPeer{cq: verbs.NewCompletionQueue(), version: rpcrdma.Version1, credit: 64}
	o := &verbs.Options{Received: p.cq, Receives: receives + 8, Private: (&rpcrdma.Private{SendSize: rdmaSize, ReceiveSize: rdmaSize, Invalidate: true}).Append(nil)}
	for range receives {
		b := make([]byte, 8<<10)
		p.receives = append(p.receives, b)
		o.Posted = append(o.Posted, verbs.Receive{Data: b})
	}
	return p, o
}

// dialHand dials a server of the test.
func dialHand(t *testing.T, address string, receives int) *handPeer {
	t.Helper()
	return dialHandFrom(t, nil, address, receives)
}

// dialHandFrom does so from a host, or from one of its own.
func dialHandFrom(t *testing.T, host *verbs.Host, address string, receives int) *handPeer {
	t.Helper()
	p, o := handOptions(receives)
	if p.t, p.host = t, host; host == nil {
		p.host = openHost(t)
	}
	qp, err := p.host.Dial(context.Background(), "tcp:"+address[len("rdma:"):], o)
	if err != nil {
		t.Fatal(err)
	}
	p.qp = qp
	t.Cleanup(qp.Abort)
	return p
}

func openHost(t *testing.T) *verbs.Host {
	t.Helper()
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	return host
}

// serveByHand listens, and has f be the server of each connection.
func serveByHand(t *testing.T, receives int, f func(p *handPeer)) (address string) {
	t.Helper()
	host := openHost(t)
	l, err := host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			p, o := handOptions(receives)
			p.t, p.host = t, host
			if p.qp, err = r.Accept(context.Background(), o); err == nil {
				go f(p)
			}
		}
	}()
	t.Cleanup(func() { l.Close() })
	return "rdma:" + l.Addr().String()
}

// receive takes the next message. It reports false when the connection has ended.
func (p *handPeer) receive() (h rpcrdma.Header, payload []byte, ok bool) {
	var done [1]verbs.Completion
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if n, err := p.cq.Wait(ctx, done[:]); err != nil || n == 0 || done[0].Err != nil {
		return h, nil, false
	}
	b := p.receives[0][:done[0].Length]
	p.receives = append(p.receives[1:], make([]byte, 8<<10))
	p.qp.PostReceive(verbs.Receive{Data: p.receives[len(p.receives)-1]})
	payload, err := rpcrdma.NewDecoder(rpcrdma.DefaultLimits()).Decode(b, &h)
	if err != nil {
		p.t.Errorf("a message that cannot be decoded: %v", err)
	}
	return h, payload, true
}

// reply takes messages until one is a Reply or an ERROR.
func (p *handPeer) reply() (h rpcrdma.Header, payload []byte, ok bool) {
	for {
		if h, payload, ok = p.receive(); !ok || h.Type != rpcrdma.TypeConnProp && !h.IsRefresh() {
			return h, payload, ok
		}
	}
}

// send sends a message.
func (p *handPeer) send(h rpcrdma.Header, payload []byte) error {
	if h.Version == 0 {
		h.Version = p.version
	}
	if h.Credit == 0 {
		h.Credit = p.credit
	}
	return p.raw(append(h.Append(nil), payload...))
}

func (p *handPeer) raw(b []byte) error {
	return p.qp.Post(&verbs.Work{Op: verbs.OpSend, Data: b})
}

// call sends a call of the test program.
func (p *handPeer) call(h rpcrdma.Header, procedure uint32, args xdr.Marshaler) error {
	return p.send(h, callOf(h.XID, procedure, args))
}

// settle speaks a version: in version 2 it sends the properties.
func (p *handPeer) settle(version uint32) {
	if p.version = version; version == rpcrdma.Version2 {
		p.credit = rpcrdma.Credit2(32, 8)
		o := rpcrdma.DefaultProperties()
		o.Reverse = rpcrdma.ReverseGeneral
		p.send(rpcrdma.Header{XID: 1, Type: rpcrdma.TypeConnProp, Properties: o.List()}, nil)
	}
}

// ended waits until the connection has ended.
func (p *handPeer) ended(what string) {
	p.t.Helper()
	select {
	case <-p.qp.Done():
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s: the connection goes on", what)
	}
}

// address returns that of the other end.
func (p *handPeer) address() net.Addr { return p.qp.RemoteAddr() }

// bothByHand runs a test over both versions, with a server and a client of both.
func bothByHand(t *testing.T, f func(t *testing.T, version uint32, o *ClientOptions)) {
	t.Run("version 1", func(t *testing.T) { f(t, rpcrdma.Version1, &ClientOptions{Versions: V1}) })
	t.Run("version 2", func(t *testing.T) { f(t, rpcrdma.Version2, &ClientOptions{Versions: V2}) })
}

// serveReplies is a server that answers each Call by what f says.
func serveReplies(t *testing.T, version uint32, f func(p *handPeer, h rpcrdma.Header, message []byte)) (address string) {
	return serveByHand(t, 80, func(p *handPeer) {
		for first := true; ; first = false {
			h, message, ok := p.receive()
			if !ok {
				return
			}
			if first {
				p.settle(version)
			}
			if len(message) > 0 || h.Type == rpcrdma.TypeNoMsg && !h.IsRefresh() {
				f(p, h, message)
			}
		}
	})
}

// flags are those of a Reply.
func (p *handPeer) flags() rpcrdma.Flags {
	if p.version == rpcrdma.Version2 {
		return rpcrdma.FlagResponse
	}
	return 0
}
