package rpc

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// ClientOptions are what a [Client] can be told. The zero value is usual.
type ClientOptions struct {
	// Credits is how many calls the server may have at once. Others wait. 0: 64. Over RDMA it is 64 at most.
	Credits int
	// MaxReply is the length of the longest reply, with its header, and without the item that goes into [CallOptions.Into]. 0: 1 MiB
	// and 64 KiB.
	MaxReply int
	// Timeout is for how long nothing may come of the server while calls wait for replies. Then the
	// connection counts as lost. 0: one minute. Below 0: without end.
	Timeout time.Duration
	// Resend says that the server keeps its replies (it has a duplicate cache). Then calls of
	// procedures that are not idempotent are sent again after a reconnect as well.
	Resend bool
	// NoReconnect leaves a lost connection lost.
	NoReconnect bool
	// GiveUp is for how long calls wait for a reply at most while the client connects again and again. Then they end with
	// [ErrNoReply]. 0: without end.
	GiveUp time.Duration
	// Callbacks carries out calls of the server to this client: the reverse direction. They come over the connections of the client,
	// which end with those of Callbacks: close the client first. Of its options, Credits is how many calls the server may have at
	// once. In version 2 of RPC-over-RDMA these are as many as the client's own Credits if that is more. nil: the client takes no calls.
	//
	// A handler that calls the server takes one of the client's Credits. It waits for ever if all of these are of calls that wait for such
	// handlers. Over version 1 of RPC-over-RDMA there is one until the first reply has come: such clients call NULL first.
	Callbacks *Server
	// Versions of RPC-over-RDMA that may be spoken. 0: both, of which a server that knows both takes V2.
	Versions Versions
	// NoCRC does without the checksums of iWARP if the server does, too. TCP's checksum is left.
	NoCRC bool
	// Host makes the connections over RDMA. nil: the client has one of its own.
	Host *verbs.Host
	// Dial makes the connections over TCP, for TLS as an example. nil: a net.Dialer, with the local port of the connection
	// before if that is free.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// ReservedPort makes the connections over TCP from a port below 1024, if the process may have one. Linux's NFS server takes
	// calls from such ports alone, unless an export has the option "insecure".
	ReservedPort bool
}

const usualTimeout = time.Minute

// Client calls programs of one server, over one connection at a time. All methods may be called by many
// goroutines.
type Client struct {
	address  string
	opts     ClientOptions
	dial     func(ctx context.Context) (carrier, error) // nil: no reconnect
	rdma     *rdmaDialer                                // nil: over a stream, or a server's
	lends    bool                                       // over RDMA
	remedy   string                                     // against the end of the connection, where the client does not connect again
	credits  chan struct{}                              // one for each call
	counters *clientCounters
	pool     sync.Pool       // of *clientCall
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	all      sync.WaitGroup // goroutines
	watch    *time.Timer

	mu         sync.Mutex
	calls      map[uint32]*clientCall // without a reply, by XID
	xid        uint32                 // of the next call
	carrier    carrier                // nil: there is no connection
	connecting bool
	reason     error // why there is no connection
	attempts   int   // to connect, since the last reply
	attempted  time.Time
	unanswered time.Time // since when calls wait for a server that was lost; zero: it has replied
	hasReplied bool      // at any time
	unreplied  int       // connections that the server has closed without a reply, before the first one
	watching   bool      // watch is running
	seen       uint64
	silent     int // how often watch has seen that nothing came
}

// carrier is a connection, as the client sees it. It tells by Client.replied and Client.lost what comes.
type carrier interface {
	// begin begins to send and receive, without blocking. Client.mu is held.
	begin()
	// submit queues a call. Client.mu is held.
	submit(c *clientCall)
	// flush sends what is queued: the call of the goroutine that calls flush, which is nil if there is none, and others.
	flush(c *clientCall)
	// withdraw takes a call back: when it returns, the connection does not need memory of the caller. It reports whether
	// the call itself is free as well.
	withdraw(c *clientCall) bool
	// received counts what came.
	received() uint64
	// close ends the connection.
	close(err error)
}

// Dial connects to a server: "tcp:HOST:PORT", or "rdma:HOST:PORT" for RPC-over-RDMA. When the connection is lost later,
// it is made again for the next call, or for those that wait for replies; they are sent again if they may be.
func Dial(ctx context.Context, address string, o *ClientOptions) (*Client, error) {
	network, host, _ := strings.Cut(address, ":")
	if network != "tcp" && network != "rdma" {
		return nil, fmt.Errorf("dial %s: the address does not begin with a transport: write tcp:HOST:PORT or rdma:HOST:PORT", address)
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		return nil, fmt.Errorf("dial %s: %w: write %s:HOST:PORT", address, err, network)
	}
	c := newClient(address, o)
	dial := c.dialStream(host)
	if network == "rdma" {
		d, err := newRDMADialer(c, host)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		c.rdma, c.lends, dial = d, true, d.dial
		c.credits = make(chan struct{}, min(c.opts.Credits, rpcrdma.MaxWindow))
	}
	s, err := dial(ctx)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	if !c.opts.NoReconnect {
		c.dial = dial
	}
	c.connected(s)
	return c, nil
}

// dialStream returns what makes connections over a stream.
func (c *Client) dialStream(host string) func(context.Context) (carrier, error) {
	dial := c.opts.Dial
	if dial == nil {
		dial = (&tcpDialer{reserved: c.opts.ReservedPort}).dial
	}
	return func(ctx context.Context) (carrier, error) {
		nc, err := dial(ctx, "tcp", host)
		if err != nil {
			return nil, err
		}
		return newStream(c, nc)
	}
}

// NewClient returns a client over a connection, as of TLS or of net.Pipe. It does not connect again.
func NewClient(nc net.Conn, o *ClientOptions) *Client {
	c := newClient(nc.RemoteAddr().String(), o)
	if s, err := newStream(c, nc); err == nil {
		c.connected(s)
	} else {
		c.reason = err
	}
	return c
}

func newClient(address string, o *ClientOptions) *Client {
	// The first XID is random: a server would take the calls of a client that begins as one before it did for its.
	c := &Client{address: address, calls: make(map[uint32]*clientCall), xid: rand.Uint32(), counters: new(clientCounters), remedy: "dial again"}
	if o != nil {
		c.opts = *o
	}
	c.opts.Credits = cmp.Or(c.opts.Credits, usualCredits)
	c.opts.MaxReply = cmp.Or(c.opts.MaxReply, usualMessage)
	c.opts.Timeout = cmp.Or(c.opts.Timeout, usualTimeout)
	c.credits = make(chan struct{}, c.opts.Credits)
	c.pool.New = newClientCall
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends the connection, and the calls that wait: their error is [ErrClosed].
func (c *Client) Close() error {
	c.mu.Lock()
	c.cancel()
	if c.watch != nil {
		c.watch.Stop()
	}
	of := c.carrier
	c.mu.Unlock()
	if of != nil {
		of.close(ErrClosed)
	}
	c.all.Wait()
	if c.rdma != nil {
		c.rdma.close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failAll(ErrClosed)
	return nil
}

// credit waits until another call may be made.
func (c *Client) credit(ctx context.Context) error {
	select {
	case c.credits <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.credits <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d other calls wait for their replies: %w", cap(c.credits), ctx.Err())
	case <-c.ctx.Done():
		return ErrClosed
	}
}

// do sends a call, and waits for its end. Afterwards no other goroutine knows of the call, but a connection may need its inline
// bytes (clientCall.busy).
func (c *Client) do(ctx context.Context, call *clientCall) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.counters.calls.Add(1)
	if c.lends {
		call.lent.prepare(call)
	}
	carrier, err := c.begin(call)
	if err != nil {
		return err
	}
	if carrier != nil {
		carrier.flush(call)
	}
	select {
	case <-call.done:
	case <-ctx.Done():
		err = c.abandon(call, ctx)
	}
	if call.carrier != nil {
		call.busy = !call.carrier.withdraw(call)
	}
	if err != nil {
		return err
	}
	return call.err
}

// begin gives a call its XID, and has the connection send it; without one, begin has it made.
func (c *Client) begin(call *clientCall) (carrier, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if c.carrier == nil && c.dial == nil {
		return nil, c.ended(c.reason)
	}
	if len(c.calls) == 0 {
		c.unanswered = time.Time{}
	}
	c.number(call)
	if c.carrier == nil {
		c.connect()
		return nil, nil
	}
	c.submit(call)
	return c.carrier, nil
}

// number gives a call an XID, and has it wait for a reply. c.mu is held.
func (c *Client) number(call *clientCall) {
	for c.calls[c.xid] != nil {
		c.xid++
	}
	call.xid = c.xid
	c.xid++
	binary.BigEndian.PutUint32(call.out.inline, call.xid)
	c.calls[call.xid] = call
}

// submit has the connection send a call. c.mu is held.
func (c *Client) submit(call *clientCall) {
	call.carrier = c.carrier
	c.carrier.submit(call)
	if !c.watching && c.opts.Timeout > 0 {
		c.watching, c.silent = true, 0
		c.rewatch()
	}
}

// abandon takes back a call whose context has ended, unless it is done.
func (c *Client) abandon(call *clientCall, ctx context.Context) error {
	c.mu.Lock()
	waits := c.calls[call.xid] == call
	if waits {
		delete(c.calls, call.xid)
	}
	reason, connected := c.reason, c.carrier != nil
	c.mu.Unlock()
	if !waits {
		<-call.done // at once
		return nil
	}
	c.counters.abandoned.Add(1)
	if !connected && reason != nil {
		return fmt.Errorf("there is no connection (%w): %w", reason, ctx.Err())
	}
	return ctx.Err()
}

// take takes a call out of those that wait, or returns nil.
func (c *Client) take(xid uint32) *clientCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[xid]
	if call == nil {
		c.counters.unmatched.Add(1)
		return nil
	}
	delete(c.calls, xid)
	c.hasReplied = true
	if c.attempts > 0 {
		c.attempts, c.unanswered = 0, time.Time{}
	}
	return call
}

// replied is told that a reply has come.
func (c *Client) replied(xid uint32, reply record, items []xdr.Item) {
	call := c.take(xid)
	switch {
	case call == nil:
		reply.mem.release()
	case reply.tooLong > 0:
		call.complete(record{}, nil, call.longReply(reply.tooLong, c.opts.MaxReply))
	default:
		call.complete(reply, items, nil)
	}
}

// failed is told that a call has failed, while the connection goes on.
func (c *Client) failed(xid uint32, err error) {
	if call := c.take(xid); call != nil {
		call.complete(record{}, nil, err)
	}
}

// refused is told that the server takes no such chunks as a call had, and has not carried it out. The call is made again, once, under another XID;
// the connection knows by then what the server takes (RPC2-112).
func (c *Client) refused(call *clientCall, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.calls[call.xid] != call: // its context has ended
	case call.repeated || c.carrier == nil:
		delete(c.calls, call.xid)
		call.complete(record{}, nil, err)
	default:
		call.repeated = true
		c.counters.repeated.Add(1)
		delete(c.calls, call.xid)
		c.number(call)
		c.submit(call)
	}
}

// into returns the length of an item for which a call that waits has a place of its own, with its padding.
func (c *Client) into(xid uint32) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[xid]; call != nil {
		return xdr.Padded(len(call.into))
	}
	return 0
}

// wantsInto reports whether a call waits whose results have an item with a place of its own.
func (c *Client) wantsInto(xid uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[xid]
	return call == nil || call.into != nil
}
