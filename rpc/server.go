package rpc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// ServerOptions are what a [Server] can be told. The zero value is usual.
type ServerOptions struct {
	// Credits is how many calls of one connection are in work, or have replies that were not sent. The
	// server reads no more of it then. 0: 64. Over RDMA it is 4 at least, and 64 at most: what is below or above counts as these.
	Credits int
	// Calls is how many calls of all connections are with handlers. 0: 1024.
	Calls int
	// Connections is how many there are. For one more the one is closed that is idle for longest. 0: 4096.
	Connections int
	// PerHost is how many of these are of one address, whatever the port. For one more the same is done among them. It bounds what a
	// host can take: see docs/limits.md. 0: 256. A server behind a proxy needs as many as Connections.
	PerHost int
	// MaxCall is the length of the longest call, with its header. A longer one is answered by SYSTEM_ERR. 0: 1 MiB and 64 KiB.
	MaxCall int
	// Duplicates is how many replies are kept for calls that are sent again, of procedures that are not
	// idempotent. 0: 1024. Below 0: none, and such a call is carried out twice.
	Duplicates int
	// Callbacks is how many calls of handlers to the client of one connection ([Call.Client]) may be without a reply. Over RDMA
	// it is 64 at most, and the client has a bound of its own as well. 0: [Call.Client] returns nil.
	Callbacks int
	// Versions of RPC-over-RDMA that are spoken. 0: both.
	Versions Versions
	// NoCRC does without the checksums of iWARP where the client does, too. TCP's checksum is left.
	NoCRC bool
	// Fault has the server misbehave over RDMA, for tests of clients. It is given each message that is to go by Send, and returns those that
	// go in its place, if any. If it reports false the connection ends. Many goroutines call it, and it may not change the message.
	Fault func(message []byte) (instead [][]byte, goesOn bool)
	// Auth decides whether a call is taken. It returns nil, an [AuthError], or another error for
	// SYSTEM_ERR. Without it calls with AUTH_NONE and AUTH_SYS are. It is not asked about NULL.
	Auth func(c *Call) error
	// Failed is told which calls were answered by SYSTEM_ERR, and why. One that is longer than MaxCall has no Auth, and is told if what
	// has come of it says which procedure it calls: see [ServerStats.TooLong].
	Failed func(c *Call, err error)
}

// Usual options, and what ends a connection.
const (
	usualCredits     = 64
	usualCalls       = 1024
	usualConnections = 4096
	usualPerHost     = 256
	usualMessage     = 1<<20 + 64<<10
	// usualBudget is how much memory all connections over RDMA have together for items that they fetch, and until the calls
	// are answered; it is four of the longest calls at least, of which one host has two. It is arbitrary.
	usualBudget = 64 << 20
	// usualReplies is how much memory all connections have together for items of replies, from when a handler is called until its reply has been sent. It is
	// arbitrary.
	usualReplies = 256 << 20
	// writeTime is for how long a client may take nothing of a reply.
	writeTime = 30 * time.Second
	// recordTime is for how long a call may come. It is arbitrary: 1 MiB in this time are 35 KB/s.
	recordTime = 30 * time.Second
	// mostMalformed is how many messages of a connection within a minute may be no calls.
	mostMalformed = 16
	// lookEvery is how often the server looks for connections that are at their end, and for old replies.
	lookEvery = time.Second
)

// Server serves programs to clients, over any number of listeners and connections.
type Server struct {
	opts     ServerOptions
	budget   budget // for items that are fetched
	replies  budget
	programs map[uint32][]*served
	slots    slots
	partTime time.Duration // of [rpcrdma.Config]; First as well
	takeTime time.Duration // over RDMA: for how long a client may take nothing
	pool     sync.Pool     // of *serverCall
	counters serverCounters
	calls    clientCounters // of handlers, to clients
	ctx      context.Context
	cancel   context.CancelFunc
	all      sync.WaitGroup // connections, and the goroutine that looks at them

	mu         sync.Mutex
	listeners  map[io.Closer]bool
	conns      map[serverCarrier]bool
	looking    bool
	draining   bool        // no more connections, listeners and calls
	duplicates *duplicates // nil: none
}

// served is a program with its handler.
type served struct {
	program *Program
	handler Handler
	calls   []callsByTransport // by the number of the procedure
}

// NewServer returns a server without programs. nil stands for usual options.
func NewServer(o *ServerOptions) *Server {
	s := &Server{programs: make(map[uint32][]*served), listeners: make(map[io.Closer]bool), conns: make(map[serverCarrier]bool)}
	if o != nil {
		s.opts = *o
	}
	s.opts.Credits = cmp.Or(s.opts.Credits, usualCredits)
	s.opts.Calls = cmp.Or(s.opts.Calls, usualCalls)
	s.opts.Connections = cmp.Or(s.opts.Connections, usualConnections)
	s.opts.PerHost = cmp.Or(s.opts.PerHost, usualPerHost)
	s.opts.MaxCall = cmp.Or(s.opts.MaxCall, usualMessage)
	if n := cmp.Or(s.opts.Duplicates, usualDuplicates); n > 0 {
		s.duplicates = newDuplicates(n)
	}
	s.budget.left = max(usualBudget, 4*s.opts.MaxCall)
	s.replies.left = max(usualReplies, 4*usualMessage)
	s.partTime, s.takeTime = partTime, writeTime
	s.slots.places = make(chan struct{}, s.opts.Calls)
	s.pool.New = func() any { return newServerCall(s) }
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Handle has h carry out the calls of p. All programs are named before the server serves. Versions of a
// program are named one by one.
func (s *Server) Handle(p *Program, h Handler) {
	s.programs[p.Number] = append(s.programs[p.Number], &served{p, h, make([]callsByTransport, max(1, len(p.Procedures)))})
}

// ServeTCP accepts connections, and serves them until the server is closed, which it says by
// [ErrClosed], or the listener fails. It closes the listener.
func (s *Server) ServeTCP(l net.Listener) error {
	defer l.Close()
	if !s.listens(l) {
		return ErrClosed
	}
	defer s.listensNoMore(l)
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			go s.ServeConn(nc)
			continue
		}
		if s.isDraining() {
			return ErrClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		// No descriptors are left, as an example.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return ErrClosed
		}
	}
}

// listens notes a listener. It reports false if the server is closed.
func (s *Server) listens(l io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.listeners[l] = true
	return true
}

func (s *Server) listensNoMore(l io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// ServeConn serves one connection, as of TLS or of net.Pipe, until its end, and until its handlers have
// returned. It closes it. Its error says why the connection ended: nil if the client has closed it.
func (s *Server) ServeConn(nc net.Conn) error {
	c := newServerConn(s, nc)
	if err := s.enter(c); err != nil {
		nc.Close()
		return err
	}
	defer s.leave(c)
	return c.serve()
}

// look looks at all connections and kept replies from time to time, until the server is closed.
func (s *Server) look() {
	defer s.all.Done()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-ticker.C:
			s.mu.Lock()
			for c := range s.conns {
				c.look(now)
			}
			if s.duplicates != nil {
				s.duplicates.expire(now)
			}
			s.mu.Unlock()
		}
	}
}

// Shutdown closes the listeners, reads no more calls, answers those in work, and closes. When ctx ends
// before, it closes as Close does and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			s.mu.Lock()
			left := len(s.conns)
			s.mu.Unlock()
			if left == 0 {
				return
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-s.ctx.Done():
				return
			}
		}
	}()
	select {
	case <-done:
		return s.Close()
	case <-ctx.Done():
		s.Close()
		<-done
		return ctx.Err()
	}
}

// drain closes the listeners, and has connections read no more.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.drain()
	}
}

// Close ends all connections, and waits until all handlers have returned: their contexts end.
func (s *Server) Close() error {
	s.drain()
	s.mu.Lock()
	s.cancel()
	for c := range s.conns {
		c.close(ErrClosed)
	}
	s.mu.Unlock()
	s.all.Wait()
	return nil
}

// arrived is told by a connection that a call has come. The connection has counted it, until serverCarrier.done.
func (s *Server) arrived(conn serverCarrier, c *serverCall, rec record, items []xdr.Item) {
	c.conn, c.peer, c.rec, c.items = conn, conn, rec, items
	c.dec.Reset(rec.b, items)
	take := c.header.take
	if rec.tooLong > 0 {
		take = c.header.takeTooLong
	}
	answer, ok := take(&c.dec)
	switch {
	case !ok:
		s.counters.malformed.Add(1)
		conn.malformed()
		conn.refuse(c)
		return
	case rec.tooLong > 0:
		s.counters.tooLong.Add(1)
		s.counters.calls.Add(1)
		s.refuseTooLong(c, answer)
		conn.replyLater(c)
		return
	case answer.status == statusSuccess:
		s.find(c, &answer)
	}
	s.counters.calls.Add(1)
	c.answer = answer
	if answer.status != statusSuccess || c.header.procedure == 0 {
		c.refuse()
		conn.replyLater(c)
		return
	}
	conn.dispatch(c)
}

// find finds the program, version and procedure of a call.
func (s *Server) find(c *serverCall, answer *replyHeader) {
	versions := s.programs[c.header.program]
	if len(versions) == 0 {
		answer.status = statusProgramUnavailable
		return
	}
	answer.low, answer.high = versions[0].program.Version, versions[0].program.Version
	var found *served
	for _, v := range versions {
		answer.low, answer.high = min(answer.low, v.program.Version), max(answer.high, v.program.Version)
		if v.program.Version == c.header.version {
			c.Program, c.handler, found = v.program, v.handler, v
		}
	}
	if c.Program == nil {
		answer.status = statusProgramMismatch
		return
	}
	c.Procedure, c.XID, c.Auth = c.header.procedure, c.header.xid, c.header.credential
	if c.procedure = c.Program.procedure(c.Procedure); c.procedure == nil && c.Procedure != 0 {
		answer.status = statusProcedureUnavailable
		return
	}
	found.calls[c.Procedure].add(c.conn)
}

// carryOut has the handler carry out a call, and answers it.
func (s *Server) carryOut(c *serverCall) {
	err := s.authenticate(c)
	switch {
	case err != nil:
		c.fail(err)
	case c.procedure.Idempotent || s.duplicates == nil || c.conn.client() == "":
		c.carryOut(c.conn.context())
	default:
		s.once(c)
		return
	}
	s.free()
	if c.misplaced {
		c.conn.refuse(c)
		return
	}
	c.fitRoom()
	c.conn.answer(c)
}

// once carries out a call of a procedure that is not idempotent, unless it has come before, and answers it.
func (s *Server) once(c *serverCall) {
	id := identity{c.conn.client(), c.header.xid, c.header.program, c.header.version, c.header.procedure, s.duplicates.checksum(c.header.credential, c.rec.b, c.dec.Offset(), c.items)}
	s.mu.Lock()
	entry, reply, before := s.duplicates.begin(id, c)
	s.mu.Unlock()
	if before != nil {
		before.conn.refuse(before)
	}
	switch {
	case entry != nil:
		c.carryOut(s.ctx) // and a misplaced item is an error like any other: the answer is GARBAGE_ARGS
		kept := xdr.AppendFlat(nil, c.enc.Bytes(), c.enc.Items())
		s.mu.Lock()
		waiter := s.duplicates.end(entry, kept, time.Now())
		s.mu.Unlock()
		s.free()
		c.fitRoom()
		c.conn.answer(c)
		if waiter != nil {
			waiter.repeat(kept)
		}
	case reply != nil:
		s.counters.duplicates.Add(1)
		s.free()
		c.repeat(reply)
	default: // it waits
		s.counters.duplicates.Add(1)
		s.free()
	}
}

// authenticate asks whether the call is taken.
func (s *Server) authenticate(c *serverCall) error {
	if s.opts.Auth != nil {
		return s.opts.Auth(&c.Call)
	}
	if c.Auth.Flavor != FlavorNone && c.Auth.Flavor != FlavorSys {
		return &AuthError{Rejected}
	}
	return nil
}
