package rpc

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
)

// rdmaConn drives a machine of package rpcrdma over a queue pair.
//
// The goroutine that has the turn owns the machine. A goroutine that has something to tell takes the turn if it is free;
// otherwise the goroutine that has it hears of it before it leaves. So nothing waits for another goroutine to wake up.
type rdmaConn struct {
	qp *verbs.QueuePair
	cq *verbs.CompletionQueue // of what is sent and received
	// answers is the half that answers calls of the peer. nil: none are taken, and the machine tells of none.
	answers *rdmaServer
	// yields has the goroutine that reads let those run that it has woken, before it looks for more: it would keep their processor.
	yields bool

	reads    atomic.Uint64   // batches of completions
	counters *clientCounters // of Replies and ERRORs to no call, and of messages that are malformed
	fault    func(message []byte) (instead [][]byte, goesOn bool)

	// waits ends when the queue pair has: then no receive may be posted that would complete to tell so.
	waits context.Context
	stop  context.CancelFunc

	mu    sync.Mutex
	inbox []rdmaEvent
	taken bool  // a goroutine has the turn
	over  bool  // the machine has ended, and takes no calls
	cause error // why the connection ended, or is to end

	// Of the goroutine that has the turn.
	runs     func() // run, made once: a go statement takes no memory then
	machine  *rpcrdma.Machine
	events   []rdmaEvent
	works    []verbs.Work                          // that are not posted
	receives []verbs.Receive                       // that are not posted
	posted   []*rpcrdma.Buffer                     // from first on: receives that are not complete, in order
	first    int                                   // in posted
	size     int                                   // of receives
	counted  struct{ unmatched, malformed uint64 } // of the machine's, in counters
	closing  bool                                  // shutdown is to begin when what was heard is posted
	timer    *time.Timer                           // of Machine.Tick
	tick     time.Time                             // when the timer fires; zero: it does not
	version  atomic.Uint32                         // of RPC-over-RDMA, as far as it is known
	done     chan struct{}                         // closed at the end, when no goroutine has the turn any more
}

// rdmaEvent is something that the machine is told.
type rdmaEvent struct {
	kind   rdmaEventKind
	call   *rpcrdma.Call
	in     *rpcrdma.Incoming
	answer rpcrdma.Answer
	report rpcrdma.Report
	terms  chan<- rpcrdma.Terms
	err    error

	// Of a completion.
	serial      uint64
	length      int
	invalidated bool
	stag        uint32
}

type rdmaEventKind uint8

const (
	rdmaReceived  rdmaEventKind = iota
	rdmaCompleted               // a work
	rdmaCall
	rdmaCancel
	rdmaPlace
	rdmaReply
	rdmaFail
	rdmaTick
	rdmaTerms
	rdmaClose
	rdmaLost
)

const (
	// rdmaBatch is how many completions are taken at once. It is arbitrary.
	rdmaBatch = 64
	// rdmaRounds is how often a goroutine with the turn looks for more before it leaves the rest to another one: it has
	// work of its own.
	rdmaRounds = 4
	// rdmaCloseTime is how long what is posted may take when this side ends the connection.
	rdmaCloseTime = time.Second
)

// receiveBuffers takes n buffers for receives.
func receiveBuffers(n, size int) ([]*rpcrdma.Buffer, []verbs.Receive) {
	buffers, receives := make([]*rpcrdma.Buffer, n), make([]verbs.Receive, n)
	for i := range buffers {
		buffers[i] = rdmaPool{}.Get(size)
		receives[i].Data = buffers[i].B
	}
	return buffers, receives
}

// init has events wait until start.
func (c *rdmaConn) init() {
	c.done, c.taken, c.runs = make(chan struct{}), true, c.run
	c.waits, c.stop = context.WithCancel(context.Background())
}

// start begins to drive. The receives that the queue pair was opened with are in c.posted.
func (c *rdmaConn) start(config *rpcrdma.Config) {
	c.size = config.ReceiveSize
	c.machine = rpcrdma.New(config, rdmaMemory{c.qp.Domain(), c.qp.Stream()}, rdmaPool{}, time.Now())
	c.run()
}

// read takes completions until the queue pair has ended, and then waits for the end of the machine.
func (c *rdmaConn) read() {
	var batch [rdmaBatch]verbs.Completion
	for ended := false; !ended; {
		n, err := c.cq.Wait(c.waits, batch[:])
		c.reads.Add(1)
		c.mu.Lock()
		for i := range batch[:n] {
			ended = ended || batch[i].Err != nil
			c.inbox = append(c.inbox, eventOf(&batch[i]))
		}
		mine := c.claim()
		c.mu.Unlock()
		ended = ended || err != nil && n < len(batch)
		if mine {
			c.run()
		}
		if c.yields {
			runtime.Gosched()
		}
	}
	c.stop()
	c.qp.Abort() // returns when everything has completed
	c.tell(rdmaEvent{kind: rdmaLost})
	<-c.done
}

func eventOf(done *verbs.Completion) rdmaEvent {
	if done.Op == verbs.OpReceive {
		return rdmaEvent{kind: rdmaReceived, length: int(done.Length), invalidated: done.Invalidated, stag: done.STag, err: done.Err}
	}
	return rdmaEvent{kind: rdmaCompleted, serial: done.ID, err: done.Err}
}

// add adds an event. The turn has to be taken afterwards: see [rdmaConn.flush]. It reports false for a call that came after the
// end.
func (c *rdmaConn) add(e rdmaEvent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over && e.kind == rdmaCall {
		return false
	}
	c.inbox = append(c.inbox, e)
	return true
}

// tell tells the machine something, now or as soon as the goroutine that has the turn gets to it.
func (c *rdmaConn) tell(e rdmaEvent) {
	c.add(e)
	c.flush()
}

// flush takes the turn, if it is free.
func (c *rdmaConn) flush() {
	c.mu.Lock()
	mine := c.claim()
	c.mu.Unlock()
	if mine {
		c.run()
	}
}

// claim takes the turn if it is free and there is something to do. c.mu is held.
func (c *rdmaConn) claim() bool {
	if c.taken || len(c.inbox) == 0 {
		return false
	}
	c.taken = true
	return true
}

// run has the turn until there is nothing left to do.
func (c *rdmaConn) run() {
	for round := 0; ; round++ {
		if round == rdmaRounds {
			go c.runs()
			return
		}
		c.mu.Lock()
		c.events, c.inbox = c.inbox, c.events[:0]
		c.mu.Unlock()
		now := time.Now()
		if c.hearAll(now) {
			c.end(now)
		}
		c.drive(now)
		if c.closing { // what was heard before is posted
			c.closing = false
			go c.shutdown()
		}
		c.mu.Lock()
		if len(c.inbox) == 0 {
			c.taken = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// hearAll tells the machine what came. It reports whether the end of the connection was among it.
func (c *rdmaConn) hearAll(now time.Time) (lost bool) {
	for i := range c.events {
		lost = c.hear(now, &c.events[i]) || lost
	}
	clear(c.events)
	return lost
}

// hear tells the machine one thing. It reports whether that is the end of the connection.
func (c *rdmaConn) hear(now time.Time, e *rdmaEvent) bool {
	switch e.kind {
	case rdmaReceived:
		b := c.posted[c.first]
		c.posted[c.first] = nil
		c.first++
		if e.err != nil {
			rdmaPool{}.Put(b)
			break
		}
		c.machine.Received(now, b, e.length, e.invalidated, e.stag)
	case rdmaCompleted:
		if e.err == nil {
			c.machine.Completed(now, e.serial)
		}
	case rdmaCall:
		if err := c.machine.Call(now, e.call); err != nil {
			e.call.Err = err
			e.call.Done(e.call)
		}
	case rdmaCancel:
		c.machine.Cancel(now, e.call)
	case rdmaPlace:
		c.machine.Place(now, e.in, nil)
	case rdmaReply:
		c.machine.Reply(now, e.in, e.answer)
	case rdmaFail:
		c.machine.Fail(now, e.in, e.report)
	case rdmaTick:
		c.tick = time.Time{}
		c.machine.Tick(now) // what is due becomes actions
	case rdmaTerms:
		e.terms <- c.machine.Terms()
	case rdmaClose:
		c.closing = true
	case rdmaLost:
		return true
	}
	return false
}

// drive does what the machine wants done.
func (c *rdmaConn) drive(now time.Time) {
	if v := c.machine.Version(); v != c.version.Load() {
		c.version.Store(v) // before a handler asks for it
	}
	unmatched, malformed := c.machine.Unmatched(), c.machine.Malformed()
	if n := &c.counted; unmatched != n.unmatched || malformed != n.malformed {
		c.counters.unmatched.Add(unmatched - n.unmatched) // before the call returns whose Reply came after them
		c.counters.malformed.Add(malformed - n.malformed)
		n.unmatched, n.malformed = unmatched, malformed
	}
	var a rpcrdma.Action
	for {
		for c.machine.Next(c.qp.Room()-len(c.works), &a) {
			c.do(&a)
		}
		if !c.post() {
			break // there was nothing more
		}
	}
	c.retick(now)
}

// do carries out one action.
func (c *rdmaConn) do(a *rpcrdma.Action) {
	switch a.Kind {
	case rpcrdma.ActPost:
		w := verbs.Work{ID: a.Serial, Silent: !a.Signaled, Data: a.Data, STag: a.To.Handle, TO: a.To.Offset}
		switch a.Op {
		case rpcrdma.OpSend:
			w.Op, w.Invalidating, w.Invalidate = verbs.OpSend, a.Invalidate != 0, a.Invalidate
			if c.fault != nil {
				c.misbehave(w)
				return
			}
		case rpcrdma.OpWrite:
			w.Op = verbs.OpWrite
		case rpcrdma.OpRead:
			w.Op = verbs.OpRead
		}
		c.works = append(c.works, w)
	case rpcrdma.ActReceive:
		if n := len(c.posted); n+a.N > cap(c.posted) {
			c.posted = c.posted[:copy(c.posted, c.posted[c.first:])]
			clear(c.posted[len(c.posted):n])
			c.first = 0
		}
		for range a.N {
			b := rdmaPool{}.Get(c.size)
			c.posted = append(c.posted, b)
			c.receives = append(c.receives, verbs.Receive{Data: b.B})
		}
	case rpcrdma.ActPlace:
		c.answers.place(a.In)
	case rpcrdma.ActDeliver:
		c.answers.deliver(a.In)
	case rpcrdma.ActReturn:
		a.Call.Done(a.Call)
	case rpcrdma.ActAnswered:
		if a.Done != nil {
			a.Done()
		}
	case rpcrdma.ActClose:
		c.close(a.Err)
	}
}

// post posts what was collected: receives before what grants them. It reports whether there was anything.
func (c *rdmaConn) post() bool {
	if len(c.receives) == 0 && len(c.works) == 0 {
		return false
	}
	// Either fails only if the queue pair has ended: the machine knows what room there is. Then the rest counts as flushed.
	_, err := c.qp.PostReceives(c.receives)
	if err == nil {
		_, err = c.qp.PostList(c.works)
	}
	clear(c.receives)
	clear(c.works)
	c.receives, c.works = c.receives[:0], c.works[:0]
	if err != nil {
		c.stop()
	}
	return err == nil
}

// retick sets the timer to when the machine wants to be told the time.
func (c *rdmaConn) retick(now time.Time) {
	next := c.machine.Tick(now)
	if next.IsZero() || !c.tick.IsZero() && !next.Before(c.tick) {
		return
	}
	c.tick = next
	if c.timer == nil {
		c.timer = time.AfterFunc(time.Until(next), func() { c.tell(rdmaEvent{kind: rdmaTick}) })
	} else {
		c.timer.Reset(time.Until(next))
	}
}

func (c *rdmaConn) RemoteAddr() net.Addr { return c.qp.RemoteAddr() }

// terms returns what both sides keep to, unless the connection has ended.
func (c *rdmaConn) terms() (t rpcrdma.Terms, ok bool) {
	answer := make(chan rpcrdma.Terms, 1)
	c.tell(rdmaEvent{kind: rdmaTerms, terms: answer})
	select {
	case t = <-answer:
		return t, true
	case <-c.done:
		return t, false
	}
}

// transport says how messages travel.
func (c *rdmaConn) transport() string {
	switch c.version.Load() {
	case rpcrdma.Version1:
		return "rdma v1"
	case rpcrdma.Version2:
		return "rdma v2"
	}
	return "rdma"
}
