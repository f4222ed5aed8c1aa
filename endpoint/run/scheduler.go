package run

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// Engine is what a [Scheduler] runs.
type Engine[W any] interface {
	// Now tells the time.
	Now() ack.Instant
	// Receive takes a batch of datagrams from the transport and returns how many there
	// are. It waits for the first no longer than wait, or without end.
	Receive(wait time.Duration) (n int, err error)
	// Apply acts on a batch that Receive took, and on what else is there already. It
	// reports whether something is to be sent because of it that is no item's.
	Apply(n int) (reply bool, err error)
	// Reply sends what Apply reported.
	Reply()
	// Serve adds what an item has to send to the batch to be sent, and reports whether
	// that is all of it.
	Serve(w W, now ack.Instant) (complete bool)
	// Flush sends the batch.
	Flush()
	// Expire acts on a deadline of an item, which may have moved on a moment ago.
	Expire(w W, now ack.Instant)
	// Deliver calls the functions that wait for what is done.
	Deliver()
	// Broken is called once: the scheduler broke, for this reason.
	Broken(err error)
	// Abandon answers all that is pending with the reason why the scheduler broke.
	Abandon(err error)
}

// Config is how a scheduler behaves.
type Config struct {
	// Spin makes pollers look for datagrams without ever sleeping.
	Spin bool
	// CallerPolling lets callers of Await receive in place of the receive goroutine.
	CallerPolling bool
	// ErrPanic is the reason to break if a callback panics.
	ErrPanic error
	// ErrClosed is what Progress returns after Close.
	ErrClosed error
}

// Scheduler decides which goroutine runs an engine. Its methods are safe for concurrent use.
type Scheduler[W any] struct {
	engine Engine[W]
	cfg    Config
	own    bool // Start made its goroutines

	receiveLock receiveLock
	handover
	batching atomic.Bool // a batch is being applied; its end then looks at pending and batchEnd
	batchEnd barrier

	replyPending bool // a reply is to be sent; guarded by receiveLock
	sendLock     sendLock
	pending      atomic.Bool // there may be work
	wake         chan struct{}
	work         worklist[W]
	alarm        alarm[W]
	beforeUnlock func() // nil but in tests: called between the last look at the work and the release of the send lock

	mu     sync.Mutex
	err    error // why it broke
	closed bool
	broken atomic.Bool // err is set

	ending chan struct{} // closed when Close begins
	ended  chan struct{} // closed when Close begins, or the scheduler breaks; guarded by mu
	stop   chan struct{} // closed when Close begins to end the goroutines
	done   chan struct{} // closed when Close is complete
	loops  sync.WaitGroup
}

// Init prepares a scheduler.
func (s *Scheduler[W]) Init(e Engine[W], cfg Config) {
	s.engine, s.cfg = e, cfg
	s.wake, s.ending, s.stop, s.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.ended = make(chan struct{})
	s.receiveLock.init()
	s.sendLock.init()
	s.handover.init()
	s.alarm.init()
}

// Start makes the scheduler's own goroutines. If blocks is set, Receive keeps its thread
// while it waits.
func (s *Scheduler[W]) Start(blocks bool) {
	s.own = true
	s.receiveLock.lock()
	s.loops.Add(2)
	go s.receiveLoop(blocks)
	go s.sendLoop()
}
