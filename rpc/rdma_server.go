package rpc

import (
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
)

// serverSends is the length of a server's send queue. It is arbitrary: a reply of 1 MiB with a chunk of one segment
// is two works.
const serverSends = 512

// ServeRDMA takes connections of RPC-over-RDMA from l, and serves them until the server is closed, which it says by
// [ErrClosed], or the listener fails. It closes the listener.
func (s *Server) ServeRDMA(l *verbs.Listener) error {
	defer l.Close()
	if !s.listens(l) {
		return ErrClosed
	}
	defer s.listensNoMore(l)
	for {
		r, err := l.Accept(s.ctx)
		if err != nil {
			if s.isDraining() {
				return ErrClosed
			}
			return err
		}
		go s.ServeRequest(r)
	}
}

// ServeRequest accepts one connection of RPC-over-RDMA, and serves it until its end, and until its handlers have returned. Its error
// says why the connection ended: nil if the client has closed it.
func (s *Server) ServeRequest(r *verbs.Request) error {
	lowest, highest := s.opts.Versions.bounds()
	config := &rpcrdma.Config{
		Side: rpcrdma.Server, Lowest: lowest, Highest: highest,
		Window: min(max(s.opts.Credits, rpcrdma.MinWindow), rpcrdma.MaxWindow), Sends: serverSends,
		SendSize: rdmaSize, ReceiveSize: rdmaSize, Local: rpcrdma.Private{SendSize: rdmaSize, ReceiveSize: rdmaSize},
		Peer: rpcrdma.ParsePrivate(r.Private), MaxCall: s.opts.MaxCall, MaxReply: s.opts.MaxCall,
		Reverse: s.opts.Callbacks, First: s.partTime, PartTime: s.partTime, GiveUp: usualTimeout,
	}
	c := newRDMAServer(&rdmaConn{cq: verbs.NewCompletionQueue(), fault: s.opts.Fault}, s)
	c.host = hostOf(r.RemoteAddr())
	defer c.cancel()
	if err := s.enter(c); err != nil {
		r.TurnAway(nil)
		return err
	}
	defer s.leave(c)
	var receives []verbs.Receive
	c.posted, receives = receiveBuffers(config.Posted(), rdmaSize)
	qp, err := r.Accept(c.ctx, &verbs.Options{
		Private: config.Local.Append(nil), Posted: receives, Receives: config.Receives(), Sends: serverSends,
		Completions: c.cq, Received: c.cq, NoCRC: s.opts.NoCRC, GiveUp: s.takeTime,
	})
	if err != nil {
		return err
	}
	c.qp = qp
	_, config.ORD = qp.Limits()
	c.config = config
	c.init()
	c.accepted()
	c.read()
	c.callbacks.end(c.reason())
	c.cancel()
	c.all.Wait()
	if why := c.reason(); why != errPeerClosed {
		return why
	}
	return nil
}

// hostOf returns an address without its port.
func hostOf(a net.Addr) string {
	if host, _, err := net.SplitHostPort(a.String()); err == nil {
		return host
	}
	return a.String()
}

// rdmaServer is the half of a connection over RDMA that answers calls: forward ones at a server, and those of the server at a client.
type rdmaServer struct {
	*rdmaConn
	server    *Server
	config    *rpcrdma.Config
	dialed    *Client   // whose connection it is; nil at a server
	callbacks callbacks // at a server
	host      string    // of the peer, without port; empty if its calls do not come again
	ctx       context.Context
	cancel    context.CancelFunc
	all       sync.WaitGroup // handlers

	active atomic.Int64 // when something has come, in nanoseconds: as of the last look
	seen   uint64       // of Server.look

	// held is calls whose items are being fetched. They have a share of the server's budget, or wait for it. Of the goroutine that has
	// the turn.
	held map[*rpcrdma.Incoming]*serverCall

	life sync.Mutex
	// Guarded by life.
	ready    bool // the queue pair is there
	draining bool // no more calls are carried out
	closed   error
	inWork   int // calls
	fetching int // calls that are in held
}

func newRDMAServer(conn *rdmaConn, s *Server) *rdmaServer {
	c := &rdmaServer{rdmaConn: conn, server: s, held: make(map[*rpcrdma.Incoming]*serverCall)}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	conn.answers = c
	if conn.counters == nil { // else that of a client
		conn.counters = &s.calls
	}
	return c
}

// accepted begins to drive the connection, unless it was closed while it was set up.
func (c *rdmaServer) accepted() {
	c.active.Store(time.Now().UnixNano())
	c.life.Lock()
	c.ready = true
	closed := c.closed
	if c.draining && closed == nil {
		closed = errDraining
	}
	c.life.Unlock()
	c.start(c.config)
	if closed != nil {
		c.rdmaConn.close(closed)
	}
}

func (c *rdmaServer) client() string           { return c.host }
func (c *rdmaServer) context() context.Context { return c.ctx }

// caller returns what calls the peer.
func (c *rdmaServer) caller() *Client {
	if c.dialed != nil {
		return c.dialed
	}
	return c.callbacks.of(c.server, c.RemoteAddr(), func(of *Client) carrier {
		of.lends = true
		of.credits = make(chan struct{}, min(cap(of.credits), rpcrdma.MaxWindow))
		return &rdmaClient{rdmaConn: c.rdmaConn, client: of, config: c.config}
	})
}

// place decides about the items of a call before any of them is fetched: those that no program takes are refused, and others wait
// until the server has memory for them.
func (c *rdmaServer) place(in *rpcrdma.Incoming) {
	if !c.server.takesItems(in) {
		c.tell(rdmaEvent{kind: rdmaFail, in: in, report: rpcrdma.Report{Code: rpcrdma.CodeBadXDR}})
		return
	}
	call := c.server.pool.Get().(*serverCall)
	call.conn, call.in = c, in
	call.share.host, call.share.n = c.host, in.ItemsLength()
	c.held[in] = call
	c.life.Lock()
	c.fetching++
	c.life.Unlock()
	if c.server.budget.take(&call.share) {
		c.fetch(in)
	}
}

// fetch has the items of a call fetched, which has its share.
func (c *rdmaServer) fetch(in *rpcrdma.Incoming) { c.add(rdmaEvent{kind: rdmaPlace, in: in}) }

// granted tells that a call that has waited has its share. A goroutine that gives memory back has the turn of another connection,
// and does not stay for the work of this one.
func (c *serverCall) granted() {
	conn := c.conn.(*rdmaServer)
	conn.fetch(c.in)
	go conn.flush()
}

// takesItems reports whether the procedure of a call takes as many items as have been sent by themselves.
func (s *Server) takesItems(in *rpcrdma.Incoming) bool {
	const words = atProcedure + 4
	if len(in.Message) < words {
		return false
	}
	word := func(at int) uint32 { return binary.BigEndian.Uint32(in.Message[at:]) }
	for _, v := range s.programs[word(atProcedure-8)] {
		if v.program.Version == word(atProcedure-4) {
			p := v.program.procedure(word(atProcedure))
			return p != nil && len(in.Items) <= p.BulkArgs
		}
	}
	return true // the answer says that there is no such program or version
}

// deliver has a call carried out.
func (c *rdmaServer) deliver(in *rpcrdma.Incoming) {
	call := c.held[in]
	c.life.Lock()
	takes := !c.draining
	if takes {
		c.inWork++
		if call != nil {
			c.fetching--
		}
	}
	c.life.Unlock()
	if !takes {
		return // the client sends it again over another connection
	}
	delete(c.held, in)
	if call == nil {
		call = c.server.pool.Get().(*serverCall)
		call.in = in
	}
	rec := record{b: in.Message, tooLong: in.TooLong}
	if rec.tooLong > 0 && len(rec.b) < kindLength {
		rec.b = binary.BigEndian.AppendUint32(nil, in.XID)
		rec.b = binary.BigEndian.AppendUint32(rec.b, kindCall)
	}
	c.server.arrived(c, call, rec, in.Items)
}

// ended gives back what was being fetched, and what is waited for.
func (c *rdmaServer) ended() {
	for in, call := range c.held {
		c.server.budget.put(&call.share)                  // the collector takes the call: its share may be granted right now
		c.machine.Fail(time.Time{}, in, rpcrdma.Report{}) // which gives its memory back
		delete(c.held, in)
	}
}

// dispatch has a call carried out when the server has memory for its reply and a place for it. At a client, whose server is one, it has memory.
func (c *rdmaServer) dispatch(call *serverCall) {
	c.all.Add(1)
	call.all = &c.all
	if c.dialed != nil || call.needsRoom() {
		c.server.start(call)
	}
}

func (c *rdmaServer) hasRoom(call *serverCall) { c.server.start(call) }

func (c *rdmaServer) reply(call *serverCall) {
	if call.rec.tooLong > 0 && call.in.Version == rpcrdma.Version2 { // RPC2-104
		c.failBy(call, rpcrdma.CodeSystem)
		return
	}
	c.life.Lock()
	closed := c.closed != nil
	c.life.Unlock()
	if closed { // the handler may have failed because of that
		call.done()
		return
	}
	c.add(rdmaEvent{kind: rdmaReply, in: call.in, answer: rpcrdma.Answer{Head: call.enc.Bytes(), Items: call.enc.Items(), Done: call.out.sent}})
}

// replyLater is reply: the goroutine that has the turn looks for more.
func (c *rdmaServer) replyLater(call *serverCall) { c.reply(call) }

// answer lets handlers that are about to answer as well do so first, as [rdmaClient.flush] does.
func (c *rdmaServer) answer(call *serverCall) {
	alone := goesAlone(0, call.enc.Items())
	c.reply(call) // from here on the call is the machine's
	if !alone && c.several() {
		runtime.Gosched()
	}
	c.flush()
}

// several reports whether more than one call is in work.
func (c *rdmaServer) several() bool {
	c.life.Lock()
	defer c.life.Unlock()
	return c.inWork > 1
}

// refuse answers a call by an ERROR of the transport.
func (c *rdmaServer) refuse(call *serverCall) { c.failBy(call, rpcrdma.CodeBadXDR) }

func (c *rdmaServer) failBy(call *serverCall, code rpcrdma.ErrorCode) {
	in := call.in
	call.done()
	c.tell(rdmaEvent{kind: rdmaFail, in: in, report: rpcrdma.Report{Code: code}})
}

func (c *rdmaServer) done(call *serverCall) {
	if call.share.n > 0 {
		c.server.budget.put(&call.share)
	}
	c.life.Lock()
	c.inWork--
	last := c.draining && c.inWork == 0 && c.ready
	c.life.Unlock()
	if last {
		c.rdmaConn.close(errDraining)
	}
}

// malformed: the machine counts messages that are no calls, by what is answered.
func (c *rdmaServer) malformed() {}

func (c *rdmaServer) idle() bool {
	if c.dialed != nil || c.callbacks.out() > 0 {
		return false
	}
	c.life.Lock()
	defer c.life.Unlock()
	return c.inWork == 0 && c.fetching == 0
}

func (c *rdmaServer) lastActive() int64 { return c.active.Load() }

func (c *rdmaServer) look(now time.Time) {
	if n := c.reads.Load(); n != c.seen {
		c.seen = n
		c.active.Store(now.UnixNano())
	}
}

// drain has the connection carry out no more calls, and end when those in work are answered.
func (c *rdmaServer) drain() {
	c.life.Lock()
	first := !c.draining
	c.draining = true
	now := first && c.ready && c.inWork == 0
	c.life.Unlock()
	if now {
		c.rdmaConn.close(errDraining)
	}
}

func (c *rdmaServer) close(why error) {
	c.life.Lock()
	if c.closed == nil {
		c.closed = why
	}
	ready := c.ready
	c.draining = true
	c.life.Unlock()
	c.cancel()
	if ready {
		c.rdmaConn.close(why)
	}
}
