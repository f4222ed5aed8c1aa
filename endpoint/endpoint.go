package endpoint

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Endpoint owns a block of memory and the connections to the peers that write
// into it. All methods may be called at the same time.
type Endpoint struct {
	// Immutable.
	cfg       Config
	transport transport.Conn
	headroom  int
	memory    Memory
	began     time.Time
	quiet     quiet

	own      frame.ServiceName // of the memory
	services []*served         // guarded by mu
	offers   offers

	peers    peerTable
	draining atomic.Bool
	leaving  atomic.Bool // a callback called Close

	accepting atomic.Bool // learn peers from what they send; changed under mu
	open      atomic.Bool // and let them write into the memory; changed under mu
	welcomes  int         // who else wants them; guarded by mu

	sched   sched.Scheduler[*Conn]
	helpful bool // who waits receives meanwhile, and who posts much sends it
	answers answers
	vault   *vault // nil: nothing is sealed

	// Owned by who has the turn to send.
	batch  batch
	settle []*Conn // whose frames in it count as delivered when they are sent

	// Owned by who has the turn to receive.
	desk
	datagrams []transport.Datagram
	applying  atomic.Int64 // when the batch began that is being applied, for others to read; 0: none is
	abreast
	touched   []*Conn // those that were heard in this batch
	last      *Conn   // whose frame came last: mostly the next is his too
	scratch   []frame.Seq
	heardDone finished // what is done by a batch: on the stack it would escape
	strangers Counters
	replies   []reply // to strangers, at the end of the batch
	search    search  // among all peers

	mostLearned int // peers

	// Guarded by mu.
	mu        sync.Mutex
	closed    bool
	gone      Counters // of closed connections, and of frames that belong to none
	goneTimes Times    // of closed connections
	cookies   cookies
	inquiries map[transport.Addr]*inquiry
}

// New starts an endpoint on a transport, which it owns from now on.
func New(tc transport.Conn, cfg *Config) (*Endpoint, error) {
	caps := tc.Caps()
	full, err := cfg.withDefaults(caps)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{
		cfg: full, transport: tc, headroom: caps.Headroom, memory: full.Memory, began: time.Now(),
		datagrams: make([]transport.Datagram, max(64, caps.Batch)), mostLearned: cmp.Or(cfg.unproven(), full.MaxPeers),
	}
	e.accepting.Store(full.AcceptAny)
	e.open.Store(full.AcceptAny)
	if e.memory == nil {
		e.memory = noMemory{}
	}
	if e.own, err = frame.ParseServiceName(full.Service); err != nil {
		return nil, err
	}
	end, err := e.ownEnd()
	e.offers.init(e.own, end > 0 || err != nil)
	e.peers.init()
	least, most := leastLent, mostLent
	if full.Keys != nil {
		least, most = leastSealed, mostSealed
		e.vault = newVault(&e.cfg, caps.Headroom, &e.peers)
	}
	if t := full.Trace; t != nil && t.FrameSent != nil {
		least = math.MaxInt // it is shown frames in one piece
	}
	e.batch.init(caps.Headroom, least, most)
	e.helpful = full.helpful()
	e.sched.Init(engine{e}, sched.Config{Spin: full.BusyPoll, Lend: e.helpful, ErrCallback: ErrCallback, ErrClosed: ErrClosed})
	if d := e.driven(); d != nil {
		d.drivenBy(e, true)
	}
	if !full.Manual {
		e.sched.Start(caps.Blocks)
	}
	return e, nil
}

// driven returns what goroutines wait on that drive the endpoint, if there is such.
func (e *Endpoint) driven() driven {
	if e.cfg.Region != nil {
		return e.cfg.Region
	}
	d, _ := e.memory.(driven)
	return d
}

func (e *Endpoint) now() ack.Instant { return ack.Instant(time.Since(e.began)) }

// ID returns the endpoint's id.
func (e *Endpoint) ID() frame.EndpointID {
	return e.cfg.ID
}

// GiveUp returns how long a peer may show no progress before it counts as dead.
func (e *Endpoint) GiveUp() time.Duration {
	return e.cfg.GiveUp
}

// Manual reports whether the endpoint has no goroutines: see [Config.Manual].
func (e *Endpoint) Manual() bool { return e.cfg.Manual }

// LocalAddr returns the transport's address.
func (e *Endpoint) LocalAddr() transport.Addr {
	return e.transport.LocalAddr()
}

// Memory returns what peers write into.
func (e *Endpoint) Memory() Memory {
	return e.memory
}

// Shutdown refuses new transactions, waits until those that are posted are
// done or the context is, and closes the endpoint. In a callback it does not wait, as
// Close does not: another goroutine does, which is then done with the context.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	e.draining.Store(true)
	if inCallback() {
		go e.Shutdown(ctx)
		return nil
	}
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
			err = context.Cause(ctx) // nil if somebody closes the endpoint meanwhile
		}
	}
	return errors.Join(err, e.Close())
}

// Close ends the endpoint: everything pending fails with ErrClosed, the
// transport is closed, and when Close returns no goroutine of the endpoint and
// no callback runs any more. It waits for callbacks that run, and calls Done itself.
//
// In a callback, of this endpoint or another one, it cannot wait: from then on nothing
// can be posted, another goroutine does the rest, and Close returns nil at once. Who
// has to know when it is over calls Close again elsewhere.
func (e *Endpoint) Close() error {
	if inCallback() {
		e.draining.Store(true)
		if !e.leaving.Swap(true) {
			go e.Close()
		}
		return nil
	}
	e.draining.Store(true)
	e.mu.Lock() // who is added and did not see that is there by now, and fails with the others
	e.closed = true
	e.mu.Unlock()
	if d := e.driven(); d != nil {
		defer d.drivenBy(e, false)
	}
	err := e.sched.Close(e.sayGoodbye, e.transport.Close, func() {
		defer e.answerAll()
		e.batch.lends.Store(false) // nobody sends any more
		e.failAll(ErrClosed)
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

// sayGoodbye tells the peers that nothing comes any more. Before that the acknowledgements
// leave that wait for company: what was completed is to be acknowledged, even if who saw that
// closes the endpoint before the end of the batch.
func (e *Endpoint) sayGoodbye() {
	for _, c := range e.Conns() {
		c.mu.Lock()
		if c.tx.tells() {
			c.tx.leave()
		}
		c.mu.Unlock()
	}
}
