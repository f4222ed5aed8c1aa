package endpoint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Endpoint owns a block of memory and the connections to the peers that write
// into it. All methods may be called at the same time. A nil Endpoint, as a failed
// New leaves it, is closed and fails with [ErrNil].
type Endpoint struct {
	// Immutable.
	cfg       Config
	transport transport.Conn
	headroom  int
	memory    Memory
	began     time.Time
	quiet     quiet

	peers    peerTable
	draining atomic.Bool
	leaving  atomic.Bool // a callback called Close

	accepting atomic.Bool // learn peers from what they send; changed under mu

	// Who has work. queued connections are in working; pending is set when
	// there may be some.
	workMu   sync.Mutex
	working  []*Conn
	pending  atomic.Bool
	batching atomic.Bool // the receiving goroutine will look at pending, and after
	after    afterBatch
	claimed  atomic.Bool   // it waits for the turn
	wake     chan struct{} // one token for the sending goroutine
	timer    *time.Timer
	armMu    sync.Mutex   // keeps armed and the timer the same
	armed    atomic.Int64 // ack.Instant
	nextLook atomic.Int64 // ack.Instant before which it does not fire

	// The turn to send, which goes around: guarded by turnMu.
	turnMu  sync.Mutex
	batch   batch
	serving []*Conn

	due []*Conn // scratch of expire: of the sending goroutine, or of who polls

	// Owned by who has the turn to receive.
	receiving  receiveTurn
	datagrams  []transport.Datagram
	touched    []*Conn
	frame      frame.Frame // the one being looked at, and where
	cursor     frame.Cursor
	placements []placement
	looked     uint32 // counts the frames that admit looked at
	pool       pool
	last       *Conn // whose frame came last: mostly the next is his too
	scratch    []frame.Seq
	strangers  Counters
	replies    []reply // to strangers, at the end of the batch
	search     search  // among all peers

	// Guarded by mu.
	mu        sync.Mutex
	closed    bool
	gone      Counters // of closed connections, and of frames that belong to none
	goneTimes Times    // of closed connections
	transErr  error    // why the transport, or the endpoint, failed
	cookies   cookies

	answers answers
	failed  atomic.Bool // transErr is set

	stop chan struct{}
	done chan struct{} // closed when Close is through
	wg   sync.WaitGroup
}

// New starts an endpoint on a transport, which it owns from now on.
func New(tc transport.Conn, cfg *Config) (*Endpoint, error) {
	// A failed call leaves an interface that is nil, or one that holds a nil pointer.
	if v := reflect.ValueOf(tc); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("dgrdma: no transport for the endpoint: %w", ErrNil)
	}
	caps := tc.Caps()
	full, err := cfg.withDefaults(caps)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{
		cfg: full, transport: tc, headroom: caps.Headroom, memory: full.Memory, began: time.Now(),
		wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour),
		stop: make(chan struct{}), done: make(chan struct{}),
		datagrams: make([]transport.Datagram, max(64, caps.Batch)),
	}
	e.accepting.Store(full.AcceptAny)
	e.timer.Stop()
	e.armed.Store(math.MaxInt64)
	if e.memory == nil {
		e.memory = noMemory{}
	}
	e.peers.init()
	e.batch.init(caps.Headroom)
	e.receiving.init(full.helpful(), full.Manual)
	if !full.Manual {
		e.wg.Add(2)
		go e.receiveLoop(caps.Blocks)
		go e.sendLoop()
	}
	return e, nil
}

func (e *Endpoint) now() ack.Instant { return ack.Instant(time.Since(e.began)) }

// ID returns the endpoint's id.
func (e *Endpoint) ID() frame.EndpointID {
	if e == nil {
		return 0
	}
	return e.cfg.ID
}

// GiveUp returns how long a peer may show no progress before it counts as dead.
func (e *Endpoint) GiveUp() time.Duration {
	if e == nil {
		return 0
	}
	return e.cfg.GiveUp
}

// LocalAddr returns the transport's address.
func (e *Endpoint) LocalAddr() transport.Addr {
	if e == nil {
		return transport.Addr{}
	}
	return e.transport.LocalAddr()
}

// Memory returns what peers write into.
func (e *Endpoint) Memory() Memory {
	if e == nil {
		return nil
	}
	return e.memory
}

// Shutdown refuses new transactions, waits until those that are posted are
// done or the context is, and closes the endpoint. With [Config.Manual] it polls
// meanwhile. In a callback it does not wait, as Close does not: another goroutine
// does, which is then done with the context.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	if e == nil {
		return ErrNil
	}
	e.draining.Store(true)
	if inCallback() {
		go e.Shutdown(ctx)
		return nil
	}
	var err error
	for _, c := range e.Conns() {
		if drained := c.drain(); drained != nil && err == nil {
			err = e.await(ctx, drained)
		}
	}
	return errors.Join(err, e.Close())
}

// await waits until a channel is closed, the endpoint is, or the context is done.
func (e *Endpoint) await(ctx context.Context, over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		default: // else the turn might be chosen although it is over
		}
		select {
		case <-over:
			return nil
		case <-e.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.receiving.manual:
			e.drive()
		}
	}
}

// Close ends the endpoint: everything pending fails with ErrClosed, the
// transport is closed, and when Close returns no goroutine of the endpoint and
// no callback runs any more. It waits for callbacks that run, and calls Done itself.
//
// In a callback, of this endpoint or another one, it cannot wait: from then on nothing
// can be posted, another goroutine does the rest, and Close returns nil at once. Who
// has to know when it is over calls Close again elsewhere.
func (e *Endpoint) Close() (err error) {
	if e == nil {
		return ErrNil
	}
	if inCallback() {
		e.draining.Store(true)
		if !e.leaving.Swap(true) {
			go e.Close()
		}
		return nil
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.done
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.draining.Store(true)
	// Deferred, for each is done even if a callback in the one before it does not
	// return.
	defer close(e.done)
	defer e.answerAll()
	defer func() { err = e.halt() }()
	// What was completed is to be acknowledged, even if who saw that closes the
	// endpoint before the end of the batch.
	if e.cfg.Manual {
		e.receiving.take() // nobody polls any more
	} else {
		applied := make(chan struct{})
		e.AfterBatch(func() { close(applied) })
		<-applied
	}
	e.sayGoodbye()
	return nil
}

// halt ends everything that Close found running, and fails what is posted.
func (e *Endpoint) halt() error {
	close(e.stop)
	err := e.transport.Close()
	e.wg.Wait()
	if !e.cfg.Manual {
		e.receiving.take() // nobody helps any more
	}
	e.turnMu.Lock() // a caller of Post may still be sending, and none begins any more
	defer e.turnMu.Unlock()
	e.timer.Stop()
	e.failAll(ErrClosed)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// sayGoodbye sends the acknowledgements that wait for company: the peers would
// wait for them until they give up.
func (e *Endpoint) sayGoodbye() {
	now := e.now()
	for _, c := range e.Conns() {
		c.mu.Lock()
		if _, armed := c.due.Deadline(); armed {
			c.due.Hold(now)
			c.queue()
		}
		c.mu.Unlock()
	}
	e.pending.Store(true)
	// Who has the turn may have looked at pending for the last time, and the
	// receiving goroutine may claim ours. They are waited for a little: the
	// transport may hold them up, which is about to be closed.
	for wait := time.Duration(0); wait < goodbyeWait; wait += goodbyeWait / 100 {
		if e.turnMu.TryLock() {
			e.ownTurn(false)
			if !e.pending.Load() {
				return
			}
		}
		time.Sleep(goodbyeWait / 100)
	}
}

// goodbyeWait is how long Close waits for the turn. Arbitrary: long beside a
// batch, short for a person.
const goodbyeWait = 20 * time.Millisecond
