package dgrdma

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/sealed"
	"github.com/dgrdma/dgrdma/url"
)

// Endpoint owns a block of memory and the connections to the peers that write
// into it. All methods may be called at the same time.
type Endpoint struct {
	// Immutable.
	cfg       Config
	transport transport.Conn
	headroom  int
	marks     bool // the transport has marks of congestion (ECN)
	memory    Memory
	began     time.Time
	quiet     quiet
	url       url.Endpoint // zero: of an endpoint that was not opened by a string

	own           frame.ServiceName // of the memory
	services      []*served         // guarded by mu
	localServices localServices

	peers    peerTable
	epochs   epochs
	draining atomic.Bool
	stopping atomic.Bool // Stop was called

	gate admission.Gate // for unknown sources; its policy changes under mu

	sched         run.Scheduler[*Conn]
	callerPolling bool // caller polling: a goroutine that waits receives, and one that posts much sends it
	notifications notifications
	sealed        *sealed.Layer // nil: nothing is sealed

	// Owned by the holder of the send lock.
	batch  outgoing.Batch
	settle []*Conn // whose frames in it count as delivered when they are sent

	// Owned by the holder of the receive lock.
	receiveScratch
	datagrams []transport.Datagram
	applying  atomic.Int64 // when the batch began that is being applied, for others to read; 0: none is
	receiveProgress
	touched   []*Conn // those that were heard in this batch
	last      *Conn   // whose frame came last: mostly the next is his too
	scratch   []frame.Seq
	ackedIDs  []uint32
	acks      session.AckLog // of this batch
	ahead     ack.AheadMemory
	heardDone finished          // what is done by a batch: on the stack it would escape
	unknown   Counters          // of frames that belong to no connection
	replies   admission.Answers // to unknown sources, at the end of the batch

	// Guarded by mu.
	mu            sync.Mutex
	closed        bool
	gone          Counters // of closed connections, and of frames that belong to none
	goneTimes     Times    // of closed connections
	discoveries   map[transport.Addr]*discovery
	introductions []*introduction // of peers that were found, oldest first
}

// New starts an endpoint on a transport, which it owns from then on and closes.
func New(tc Transport, cfg *Config) (*Endpoint, error) {
	caps := tc.Caps()
	full, err := cfg.withDefaults(caps)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{
		cfg: full, transport: tc, headroom: caps.Headroom, marks: caps.ECN, memory: full.Memory, began: time.Now(),
		datagrams: make([]transport.Datagram, max(64, caps.Batch)),
	}
	e.gate.Init(full.ID, full.Profile.Session)
	e.gate.AcceptAny(full.AcceptAny)
	if e.memory == nil {
		e.memory = noMemory{}
	}
	if e.own, err = frame.ParseServiceName(full.Service); err != nil {
		return nil, err
	}
	end, err := e.ownEnd()
	e.localServices.init(e.own, end > 0 || err != nil)
	e.peers.init(admission.Bounds{
		Peers: full.MaxPeers, Learned: cmp.Or(cfg.unproven(), full.MaxPeers), PerHost: full.PeersPerHost, GiveUp: full.GiveUp,
	})
	if full.Keys != nil {
		e.sealed = sealed.New(sealed.Config{
			Keys: e.cfg.Keys, Headroom: caps.Headroom, GiveUp: e.cfg.GiveUp, Peers: e.cfg.MaxPeers, PeersPerHost: e.cfg.PeersPerHost, Answers: admission.MostAnswers,
		}, sealOwner{e})
	}
	e.replies.Init(full.MTU, e.mayCheck())
	traced := full.Trace != nil && full.Trace.FrameSent != nil // it is shown frames in one piece
	e.batch.Init(caps.Headroom, smallLength, outgoing.LendingOf(full.Keys != nil, traced))
	e.callerPolling = full.callerPolling()
	e.sched.Init(engine{e}, run.Config{Spin: full.BusyPoll, CallerPolling: e.callerPolling, ErrPanic: errPanic, ErrClosed: ErrClosed})
	if d := e.polled(); d != nil {
		d.polledBy(e, true)
	}
	if !full.Manual {
		e.sched.Start(caps.Blocks)
	}
	return e, nil
}

// polled returns the memory on which goroutines wait that drive the endpoint, if it is of that kind.
func (e *Endpoint) polled() polled {
	d, _ := e.memory.(polled)
	return d
}

func (e *Endpoint) now() ack.Instant { return ack.Instant(time.Since(e.began)) }

// ID returns the endpoint's id.
func (e *Endpoint) ID() EndpointID {
	return e.cfg.ID
}

// GiveUp returns how long a peer may show no progress before it counts as dead.
func (e *Endpoint) GiveUp() time.Duration {
	return e.cfg.GiveUp
}

// Manual reports whether the endpoint has no goroutines: see [Config.Manual].
func (e *Endpoint) Manual() bool { return e.cfg.Manual }

// LocalAddr returns the transport's address.
func (e *Endpoint) LocalAddr() Addr {
	return e.transport.LocalAddr()
}

// Memory returns what peers write into.
func (e *Endpoint) Memory() Memory {
	return e.memory
}

// Shutdown refuses new transactions, waits until those that are posted are done
// or the context is, and closes the endpoint. A callback must not call it, as it must not call Close.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	e.draining.Store(true)
	var err error
	var w Waiter
	w.Init()
	for _, c := range e.Conns() {
		c.mu.Lock()
		empty := c.tx.drain()
		c.mu.Unlock()
		if empty == nil || err != nil {
			continue
		}
		e.sched.Await(ctx, &w, never, empty, nil)
		select {
		case <-empty:
		default:
			err = context.Cause(ctx) // nil if another goroutine closes the endpoint in that time
		}
	}
	return errors.Join(err, e.Close())
}

// Stop begins to close the endpoint and returns at once: nothing can be posted any more, and another goroutine does what
// Close does. Callbacks may call it. A program that has to know when all is over calls Close as well, which waits for it.
func (e *Endpoint) Stop() {
	e.draining.Store(true)
	if !e.stopping.Swap(true) {
		go e.Close()
	}
}

// closeWarning is how long Close waits for callbacks before the logger hears of it. It is arbitrary: longer than a callback should take.
const closeWarning = time.Second

// Close ends the endpoint: everything pending fails with [ErrClosed], the
// transport is closed, and when Close returns no goroutine of the endpoint and no
// callback runs any more: then its memory and its port can be used for something else. It waits for
// callbacks that run, and calls Done itself. So a callback, of this endpoint or another one, must not call
// it: see [Endpoint.Stop].
func (e *Endpoint) Close() error {
	e.draining.Store(true)
	e.mu.Lock() // a connection that is added and did not see that is there by now, and fails with the others
	e.closed = true
	e.mu.Unlock()
	if d := e.polled(); d != nil {
		defer d.polledBy(e, false)
	}
	if l := e.cfg.Logger; l != nil {
		warn := time.AfterFunc(closeWarning, func() {
			l.Warn("Close waits for callbacks of this endpoint to return: one that calls Close itself, or Shutdown, waits for ever and is to call Stop")
		})
		defer warn.Stop()
	}
	err := e.sched.Close(e.disconnectAll, e.transport.Close, func() {
		e.batch.Abandon() // nothing is sent any more
		e.failAll(ErrClosed)
		e.deliverNotifications()
	})
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Done returns a channel that is closed when the endpoint carries nothing any more: it has
// failed, or Close was called. [Endpoint.Err] says which.
func (e *Endpoint) Done() <-chan struct{} {
	return e.sched.Ended()
}

// Err returns why the endpoint carries nothing any more: what the transport or a callback
// failed with, [ErrClosed] after Close, or nil.
func (e *Endpoint) Err() error {
	if err := e.sched.Err(); err != nil {
		return err
	}
	select {
	case <-e.sched.Ended():
		return ErrClosed
	default:
		return nil
	}
}

// disconnectAll tells the peers that nothing comes any more. Before that the acknowledgements
// leave that wait for company: what was completed is to be acknowledged, even if the program saw that and
// closes the endpoint before the end of the batch.
func (e *Endpoint) disconnectAll() {
	for _, c := range e.Conns() {
		c.mu.Lock()
		if c.tx.sendsDisconnect() {
			c.tx.disconnect()
		}
		c.mu.Unlock()
	}
}
