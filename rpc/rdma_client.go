package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

const (
	// rdmaSize is the length of the receives of a connection over RDMA, and of the longest message that goes by one Send, if the peer's
	// is not less: Linux's is 4096. So 4 KiB of data fit in with their headers, which costs a third of what it takes to lend them.
	rdmaSize = 8192
	// clientSends is the length of a client's send queue. It is arbitrary: a call is one work.
	clientSends = 256
	// fallBackFor is for how long a client remembers that a server does not answer in version 2 (RPCN-04).
	fallBackFor = 10 * time.Minute
	firstTime   = 5 * time.Second // for the server's first message (RPCN-04)
	partTime    = 10 * time.Second
)

// rdmaDialer makes the connections of a client over RDMA.
type rdmaDialer struct {
	client  *Client
	address string // of package verbs
	host    *verbs.Host
	own     bool // the host is this client's

	mu      sync.Mutex
	v1Until time.Time // the server does not answer in version 2
}

func newRDMADialer(c *Client, address string) (*rdmaDialer, error) {
	d := &rdmaDialer{client: c, address: "tcp:" + address, host: c.opts.Host}
	if d.host == nil {
		host, err := verbs.Open("tcp")
		if err != nil {
			return nil, err
		}
		d.host, d.own = host, true
	}
	return d, nil
}

func (d *rdmaDialer) close() {
	if d.own {
		d.host.Close()
	}
}

// versions returns those that are spoken on the next connection.
func (d *rdmaDialer) versions() (lowest, highest uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lowest, highest = d.client.opts.Versions.bounds()
	if lowest == rpcrdma.Version1 && time.Now().Before(d.v1Until) {
		highest = rpcrdma.Version1
	}
	return lowest, highest
}

// ended is told why a connection has ended.
func (d *rdmaDialer) ended(why error) {
	if errors.Is(why, rpcrdma.ErrFallBack) {
		d.mu.Lock()
		d.v1Until = time.Now().Add(fallBackFor)
		d.mu.Unlock()
	}
}

func (d *rdmaDialer) dial(ctx context.Context) (carrier, error) {
	o := &d.client.opts
	lowest, highest := d.versions()
	config := &rpcrdma.Config{
		Side: rpcrdma.Client, Lowest: lowest, Highest: highest,
		Window: min(max(o.Credits, rpcrdma.MinWindow), rpcrdma.MaxWindow), Sends: clientSends,
		SendSize: rdmaSize, ReceiveSize: rdmaSize, Local: rpcrdma.Private{SendSize: rdmaSize, ReceiveSize: rdmaSize, Invalidate: true},
		MaxCall: usualMessage, MaxReply: o.MaxReply,
		First: firstTime, PartTime: partTime, GiveUp: max(o.Timeout, 0),
	}
	s := &rdmaClient{rdmaConn: &rdmaConn{cq: verbs.NewCompletionQueue(), yields: true, counters: d.client.counters}, client: d.client, dialer: d, config: config}
	if callbacks := o.Callbacks; callbacks != nil {
		config.Reverse, config.MaxCall = callbacks.opts.Credits, callbacks.opts.MaxCall
		c := newRDMAServer(s.rdmaConn, callbacks)
		c.config, c.dialed = config, d.client
		if err := callbacks.enter(c); err != nil {
			c.cancel()
			return nil, fmt.Errorf("callbacks: %w", err)
		}
	}
	var receives []verbs.Receive
	s.posted, receives = receiveBuffers(config.Posted(), rdmaSize)
	qp, err := d.host.Dial(ctx, d.address, &verbs.Options{
		Private: config.Local.Append(nil), Posted: receives, Receives: config.Receives(), Sends: clientSends,
		Completions: s.cq, Received: s.cq, NoCRC: o.NoCRC,
	})
	if err != nil {
		s.leave()
		return nil, err // the receives may be in use still: the collector takes them
	}
	s.qp = qp
	config.Peer = rpcrdma.ParsePrivate(qp.Private())
	_, config.ORD = qp.Limits()
	s.init()
	return s, nil
}

// rdmaClient is the half of a connection over RDMA that calls: a client's, or that of a server's handlers.
type rdmaClient struct {
	*rdmaConn
	client *Client
	dialer *rdmaDialer // nil: the connection is a server's
	config *rpcrdma.Config
}

// RDMATerms returns which version of RPC-over-RDMA is spoken with the server, how many calls it takes at once, and how long messages
// may be that go without memory of the other side. It reports false if there is no connection over RDMA. Credits of version 1 are
// known after the first reply.
func (c *Client) RDMATerms() (rpcrdma.Terms, bool) {
	c.mu.Lock()
	s, ok := c.carrier.(*rdmaClient)
	c.mu.Unlock()
	if !ok {
		return rpcrdma.Terms{}, false
	}
	return s.terms()
}

func (s *rdmaClient) begin() {
	if s.dialer == nil {
		return // the server drives it
	}
	s.client.all.Add(1)
	go func() {
		defer s.client.all.Done()
		if s.answers != nil {
			s.answers.accepted()
		} else {
			s.start(s.config)
		}
		s.read()
		why := s.reason()
		s.dialer.ended(why)
		s.client.lost(s, why)
		s.leave()
	}()
}

// leave ends the half that answers calls, and waits for its handlers.
func (s *rdmaClient) leave() {
	if c := s.answers; c != nil {
		c.cancel()
		c.all.Wait()
		c.server.leave(c)
	}
}

func (s *rdmaClient) submit(c *clientCall) {
	c.lent.carry(c, s)
	r := c.lent.call
	if !s.add(rdmaEvent{kind: rdmaCall, call: &r.Call}) {
		r.Err = rpcrdma.ErrLost
		r.returned()
	}
}

// flush lets callers that are about to call as well do so first: replies that came together wake their callers together, and the calls
// that follow then go by one system call. Replies with long items do not come together.
func (s *rdmaClient) flush(c *clientCall) {
	if len(s.client.credits) > 1 && (c == nil || !goesAlone(len(c.into), c.out.items)) {
		runtime.Gosched()
	}
	s.rdmaConn.flush()
}

// withdraw takes a call back. It waits for the reply, or the end of the connection, if the call has lent memory of the
// program.
func (s *rdmaClient) withdraw(c *clientCall) bool {
	r := c.lent.call
	cancelled := false
	select {
	case <-r.done:
	default:
		cancelled = true
		s.tell(rdmaEvent{kind: rdmaCancel, call: &r.Call})
		<-r.done
	}
	c.lent.settle(c)
	if !cancelled {
		r.free() // else what cancels it may be on its way to the machine
	}
	return true
}

func (s *rdmaClient) received() uint64 { return s.reads.Load() }

// close ends the connection, unless it is a server's.
func (s *rdmaClient) close(err error) {
	if s.dialer != nil {
		s.rdmaConn.close(err)
	}
}

// rdmaOutgoing is a call with a machine. It is used again, but for those that were cancelled.
type rdmaOutgoing struct {
	rpcrdma.Call
	conn *rdmaClient
	of   *clientCall
	done chan struct{} // has one when the call has returned
	into [1][]byte
	item [1]xdr.Item
}

var rdmaOutgoings = sync.Pool{New: func() any {
	r := &rdmaOutgoing{done: make(chan struct{}, 1)}
	r.Done = func(*rpcrdma.Call) { r.returned() }
	return r
}}

func (r *rdmaOutgoing) free() {
	*r = rdmaOutgoing{Call: rpcrdma.Call{Done: r.Done}, done: r.done}
	rdmaOutgoings.Put(r)
}

// returned tells the client what became of the call.
func (r *rdmaOutgoing) returned() {
	c, client := r.of, r.conn.client
	switch {
	case r.Err == nil:
		var items []xdr.Item
		if r.Placed[0] >= 0 {
			r.item[0] = xdr.Item{At: xdr.Floating, Data: r.into[0][:r.Placed[0]]}
			items = r.item[:]
		}
		client.replied(c.xid, record{b: r.Message, mem: r.Reply.Of.(*memory)}, items)
	case errors.Is(r.Err, rpcrdma.ErrLost):
		c.out.state = unsent // Client.lost decides
		if r.Sent {
			c.out.state = written
		}
	case errors.Is(r.Err, rpcrdma.ErrCancelled):
	default:
		var refused *rpcrdma.PeerError
		if errors.As(r.Err, &refused) && refused.Repeatable() {
			err := r.Err
			r.done <- struct{}{} // then it is the next connection's, or the call's again
			client.refused(c, err)
			return
		}
		client.failed(c.xid, r.errorOf())
	}
	r.done <- struct{}{}
}

// lent is what a call over RDMA gives to the peer, besides its inline bytes. Unless the caller said that the peer may use
// memory of the caller (CallOptions.Direct), it is memory of the call's own: the peer of a call that was given up
// may still use it.
type lent struct {
	call  *rdmaOutgoing
	items []xdr.Item // as in the message, with data that may be lent
	own   []*rpcrdma.Buffer
	into  *rpcrdma.Buffer

	// Most calls have one item.
	item   [1]xdr.Item
	buffer [1]*rpcrdma.Buffer
}

// prepare copies what may not be lent. It is called once, before the call is sent.
func (l *lent) prepare(c *clientCall) {
	l.items = c.out.items
	if c.direct {
		return
	}
	l.items, l.own = l.item[:0], l.buffer[:0]
	for _, item := range c.out.items {
		b := rdmaPool{}.Get(len(item.Data))
		copy(b.B, item.Data)
		l.items = append(l.items, xdr.Item{At: item.At, Data: b.B})
		l.own = append(l.own, b)
	}
	if len(c.into) > 0 {
		l.into = rdmaPool{}.Get(len(c.into))
	}
}

// carry makes what the machine of a connection takes.
func (l *lent) carry(c *clientCall, s *rdmaClient) {
	if l.call != nil { // a connection that was lost has given it back
		<-l.call.done
		l.call.free()
	}
	r := rdmaOutgoings.Get().(*rdmaOutgoing)
	r.conn, r.of, l.call = s, c, r
	r.Head, r.Items, r.Direct = c.out.inline, l.items, c.direct
	r.MaxReply = maxReplyHeader + c.maxResults
	if c.anyLength {
		r.MaxReply = max(r.MaxReply, s.config.MaxReply)
	}
	switch {
	case l.into != nil:
		r.into[0] = l.into.B
		r.Into = r.into[:]
	case len(c.into) > 0:
		r.into[0] = c.into
		r.Into = r.into[:]
	}
}

// settle gives back what was not lent to the end, and copies an item that was placed to where the caller wants it. No goroutine of
// the connection knows the call any more.
func (l *lent) settle(c *clientCall) {
	if l.call.Kept {
		*l = lent{}
		return
	}
	if l.into != nil {
		if len(c.items) > 0 {
			n := copy(c.into, c.items[0].Data)
			c.items = append(c.item[:0], xdr.Item{At: xdr.Floating, Data: c.into[:n]})
		}
		rdmaPool{}.Put(l.into)
	} else {
		c.items = append(c.item[:0], c.items...)
	}
	for _, b := range l.own {
		rdmaPool{}.Put(b)
	}
	*l = lent{}
}

// maxReplyHeader is how long the header of a reply is at most.
const maxReplyHeader = 24 + 400

// Versions are versions of RPC-over-RDMA.
type Versions uint8

// Versions of RPC-over-RDMA: V1 is what Linux speaks, V2 what this package speaks with its own kind.
const (
	V1 Versions = 1 << iota
	V2
)

// bounds returns the lowest and the highest version; of none, those of both.
func (v Versions) bounds() (lowest, highest uint32) {
	lowest, highest = rpcrdma.Version1, rpcrdma.Version2
	switch v {
	case V1:
		highest = lowest
	case V2:
		lowest = highest
	}
	return lowest, highest
}

// String names the versions.
func (v Versions) String() string {
	lowest, highest := v.bounds()
	if lowest == highest {
		return fmt.Sprintf("version %d", lowest)
	}
	return fmt.Sprintf("versions %d and %d", lowest, highest)
}
