package sched

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/internal/patience"
)

// Engine is what a [Scheduler] runs.
type Engine[W any] interface {
	// Now tells the time.
	Now() ack.Instant
	// Receive takes a batch of datagrams from the transport, for which it waits no
	// longer than wait, or without end, and returns how many there are.
	Receive(wait time.Duration) (n int, err error)
	// Apply acts on a batch that Receive took, and on what else is there already. It
	// reports whether something is to be sent because of it that is no item's.
	Apply(n int) (reply bool, err error)
	// Reply sends what Apply spoke of.
	Reply()
	// Serve adds what an item has to send to the batch to be sent, and reports whether
	// that is all of it.
	Serve(w W, now ack.Instant) (whole bool)
	// Flush sends the batch.
	Flush()
	// Drop forgets the batch to be sent, while a callback does not return.
	Drop()
	// Expire acts on a deadline of an item, which may have moved on a moment ago.
	Expire(w W, now ack.Instant)
	// Deliver calls who waits for what is done.
	Deliver()
	// Broken is told once that the scheduler broke, and why.
	Broken(err error)
	// Abandon answers all that is pending with why the scheduler broke.
	Abandon(err error)
}

// Config is how a scheduler behaves.
type Config struct {
	// Spin makes whoever receives look for datagrams without ever sleeping.
	Spin bool
	// Lend lets who waits in Await receive meanwhile.
	Lend bool
	// ErrCallback is why the scheduler breaks if a callback does not return.
	ErrCallback error
	// ErrClosed is what Progress returns after Close.
	ErrClosed error
}

// Scheduler says who runs an engine. All methods may be called at the same time.
type Scheduler[W any] struct {
	engine Engine[W]
	cfg    Config
	own    bool // it has goroutines

	receiving turn
	lending
	batching atomic.Bool // a batch is being applied: its end looks at pending, and after
	after    barrier

	owes    bool // there is a reply to be sent; of the goroutine that has the turn to receive
	sending sendTurn
	pending atomic.Bool // there may be work
	wake    chan struct{}
	work    worklist[W]
	alarm   alarm[W]
	parting func() // nil but in tests: called between the last look at the work and the end of the turn

	mu     sync.Mutex
	err    error // why it broke
	closed bool
	broken atomic.Bool // err is set

	ending chan struct{} // closed when Close begins
	ended  chan struct{} // closed when it does, or the scheduler broke; guarded by mu
	stop   chan struct{} // closed when it begins to end what runs
	done   chan struct{} // closed when it is through
	loops  sync.WaitGroup
}

// Init prepares a scheduler.
func (s *Scheduler[W]) Init(e Engine[W], cfg Config) {
	s.engine, s.cfg = e, cfg
	s.wake, s.ending, s.stop, s.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.ended = make(chan struct{})
	s.receiving.init()
	s.sending.init()
	s.lending.init()
	s.alarm.init()
}

// Start makes the scheduler's own goroutines. blocks says that Receive keeps its
// thread while it waits.
func (s *Scheduler[W]) Start(blocks bool) {
	s.own = true
	s.receiving.take()
	s.loops.Add(2)
	go s.receiveLoop(blocks)
	go s.sendLoop()
}

// receiveLoop takes datagrams until the transport ends.
func (s *Scheduler[W]) receiveLoop(blocks bool) {
	defer s.loops.Done()
	if blocks {
		runtime.LockOSThread() // ends with the goroutine
	}
	idle := time.NewTimer(idleTurn)
	defer s.receiving.give()
	for !s.broken.Load() {
		if s.asked.Load() {
			s.lend(idle)
		}
		if _, err := s.receive(Forever); err != nil {
			s.Break(err)
			return
		}
	}
}

// sendLoop serves items when others do not, acts on deadlines, and delivers answers.
func (s *Scheduler[W]) sendLoop() {
	whole := false
	defer func() {
		if !whole {
			// Who else would answer what is pending?
			defer func() { go s.sendLoop() }()
			s.Break(s.cfg.ErrCallback)
			return
		}
		s.loops.Done()
	}()
	for {
		select {
		case <-s.stop:
			whole = true
			return
		case <-s.wake:
		case <-s.alarm.timer.C:
			s.expire()
		}
		s.serve()
	}
}

// Forever is a wait without end.
const Forever time.Duration = -1

// spins is after how many looks in vain others get the processor, if there is but
// one. Arbitrary.
const spins = 64

// receive takes a batch, and applies it. The caller has the turn to receive.
func (s *Scheduler[W]) receive(wait time.Duration) (n int, err error) {
	if s.owes && (wait < 0 || wait > claimFor) {
		wait = claimFor
	}
	if s.cfg.Spin && wait != 0 {
		for i := 0; n == 0 && err == nil && i < spins; i++ {
			n, err = s.engine.Receive(0)
		}
		if n == 0 {
			runtime.Gosched()
		}
	} else {
		n, err = s.engine.Receive(wait)
	}
	if err != nil || n == 0 {
		if s.owes {
			s.follow()
		}
		return n, err
	}
	if err := s.Err(); err != nil {
		return n, err
	}
	return n, s.apply(n)
}

// apply applies a batch, and sends what it calls for: as long as acknowledgements
// come in, one goroutine receives them and sends.
func (s *Scheduler[W]) apply(n int) error {
	reply, err := s.batch(n)
	s.owes = s.owes || reply
	if s.owes || s.pending.Load() {
		s.follow()
	}
	return err
}

// follow sends what a batch called for, unless the transport holds up the goroutine that has the turn to send: it serves
// what is pending when it goes on, and a reply is sent after a later batch.
func (s *Scheduler[W]) follow() {
	if s.sending.claim() {
		reply := s.owes
		s.owes = false
		s.send(reply)
	}
	if s.pending.Load() {
		s.kick()
	}
}

func (s *Scheduler[W]) batch(n int) (reply bool, err error) {
	s.batching.Store(true)
	// Each deferred by itself: what is told that the scheduler broke may not return either.
	defer s.after.run()
	defer s.batching.Store(false)
	whole := false
	defer func() {
		if !whole {
			s.Break(s.cfg.ErrCallback)
		}
	}()
	reply, err = s.engine.Apply(n)
	whole = true
	return reply, err
}

// Queue puts an item in the list of those with work. Who does calls Work when it has
// given up its locks.
func (s *Scheduler[W]) Queue(w *Entry[W]) {
	s.work.add(w)
	s.pending.Store(true)
}

// Work sees to it that queued items are served: by this goroutine if inline is set
// and nobody else is at it, else by one of the scheduler's own. What is queued amid a
// batch of datagrams is served at its end.
func (s *Scheduler[W]) Work(inline bool) {
	if s.batching.Load() {
		return // its end looks at pending after saying so
	}
	if !inline {
		s.kick()
		return
	}
	// A turn may find new work behind it; more than a few are for the scheduler's own
	// goroutine, so that the caller is not kept.
	for i := 0; i < 2 && s.pending.Load(); i++ {
		if !s.sending.tryTake() {
			return // who has the turn looks at pending after giving it back
		}
		s.send(false)
	}
	if s.pending.Load() {
		s.kick()
	}
}

// serve gives everyone with work a turn, and delivers answers.
func (s *Scheduler[W]) serve() {
	if err := s.Err(); err != nil {
		s.engine.Abandon(err)
	}
	// Who has the turn, or waits for it, looks at pending after giving it back.
	if s.pending.Load() && s.sending.tryTake() {
		s.send(false)
		if s.pending.Load() && !s.sending.claimed.Load() {
			s.kick()
		}
	}
	s.engine.Deliver()
}

// send is the turn to send, which the caller has taken, and gives it back. The caller looks at
// pending afterwards.
func (s *Scheduler[W]) send(reply bool) {
	defer s.sending.give()
	whole := false
	defer func() {
		if !whole {
			defer s.Break(s.cfg.ErrCallback)
			s.engine.Drop()
			s.work.drop()
		}
	}()
	if s.broken.Load() {
		s.pending.Store(false) // nobody has work any more
	} else {
		if reply {
			s.engine.Reply()
		}
		s.serveAll()
		if s.parting != nil {
			s.parting()
		}
	}
	whole = true
}

// serveAll serves and sends until no item has work, or who receives claims the turn. What is left for that goroutine is
// pending at once: its claim may end while Flush waits. Guarded by sending.
func (s *Scheduler[W]) serveAll() {
	for s.pending.Swap(false) {
		now := s.engine.Now()
		serving := s.work.take()
		for i, w := range serving {
			if s.sending.claimed.Load() {
				s.work.putBack(serving[i:])
				s.pending.Store(true)
				break
			}
			w.queued.Store(false)
			for !s.engine.Serve(w.item, now) {
				s.engine.Flush()
				if s.sending.claimed.Load() {
					s.Queue(w)
					break
				}
			}
		}
		s.engine.Flush()
		s.work.drop()
		if s.sending.claimed.Load() {
			return
		}
	}
}

func (s *Scheduler[W]) kick() { patience.Leave(s.wake) }

// AfterBatch calls f when nothing that Apply began before this call still goes on: at
// once, or at the end of the batch that is being applied. f must not block.
func (s *Scheduler[W]) AfterBatch(f func()) {
	mine := s.after.add(f)
	if s.batching.Load() {
		return // its end looks at the barrier
	}
	// A batch that begins now began after this call.
	if s.after.remove(mine) {
		f()
	}
}

// AtBatchEnd calls f at the end of a batch, of this or the next one.
func (s *Scheduler[W]) AtBatchEnd(f func()) { s.after.add(f) }

// Batching reports whether a batch is being applied.
func (s *Scheduler[W]) Batching() bool { return s.batching.Load() }

// Kick has answers delivered soon.
func (s *Scheduler[W]) Kick() { s.kick() }

// Break ends all sending and receiving, and says why. Of several reasons the first
// counts; that the transport is closed is none while Close runs.
func (s *Scheduler[W]) Break(err error) {
	s.mu.Lock()
	first := s.err == nil && !(s.closed && errors.Is(err, net.ErrClosed))
	if first {
		s.err = err
		s.broken.Store(true)
		if !s.closed {
			close(s.ended)
		}
	}
	s.mu.Unlock()
	if first {
		s.kick()
		s.engine.Broken(err) // last: what it calls may not return
	}
}

// Over reports whether Await does nothing any more: the scheduler was closed, or broke
// with nobody to drive it.
func (s *Scheduler[W]) Over() bool {
	select {
	case <-s.done:
		return true
	default:
		return !s.own && s.broken.Load()
	}
}

// Ended returns a channel that is closed when the scheduler breaks, or Close begins.
func (s *Scheduler[W]) Ended() <-chan struct{} { return s.ended }

// Err returns why the scheduler broke, or nil.
func (s *Scheduler[W]) Err() error {
	if !s.broken.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
