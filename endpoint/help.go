package endpoint

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// HelpMode says whether goroutines that wait for what a peer sends do the
// endpoint's work meanwhile, see [Endpoint.Help].
type HelpMode uint8

const (
	// HelpIfFew is yes if there are no more than two processors: the endpoint's
	// goroutine, the application's and the peer would take each other's place.
	// With more, two goroutines get more done than one.
	HelpIfFew HelpMode = iota
	HelpAlways
	HelpNever
)

const (
	fewProcessors = 2
	// helpPatience is how long a helper waits for datagrams, and so how long it may
	// not notice what else its caller waits for.
	helpPatience = 2 * time.Millisecond
	// helpMost is how long a helper stays that takes datagrams for others, and none
	// of those it waits for: its caller has a context to look at, too. Arbitrary:
	// short for a person, long beside a batch.
	helpMost = 20 * time.Millisecond
	// idleTurn is how long nobody may receive after a helper left, before the
	// receiving goroutine does again. Short beside the delay of acknowledgements.
	idleTurn = time.Millisecond
	// longAbsence of a helper is when it would be better if another goroutine
	// received meanwhile: in that time a megabyte comes.
	longAbsence = idleTurn / 4
	mostLuck    = 8
	// pause is for how many waits there is no help after it did not pay.
	pause = 64
	// inlineBytes makes a transaction that a helpful caller of Post sends itself:
	// that takes longer than to wake another thread. Smaller ones wait for company.
	inlineBytes = 32 << 10
)

// receiveTurn is the turn to receive. The receiving goroutine has it from the
// start, and lends it to helpers; what is said to be of the receiving goroutine is of
// who has it.
type receiveTurn struct {
	helpful  bool
	free     chan struct{} // the turn, when nobody has it
	manual   chan struct{} // free, with Config.Manual: who waits takes it; else nil
	asked    atomic.Bool   // someone would help
	loans    atomic.Uint64 // how often someone did
	offered  chan struct{} // one token: it may be borrowed now
	returned chan struct{} // one token: the receiving goroutine is to take it back now
	pauses   atomic.Int32  // waits left without help
	luck     int           // how often help paid, of late; of who has the turn
	left     ack.Instant   // when the last helper left; 0: nobody did since it was lent
	batchAt  ack.Instant   // when the last batch began
}

// take waits for the turn, give passes it on.
func (r *receiveTurn) take() { <-r.free }
func (r *receiveTurn) give() { r.free <- struct{}{} }

func (r *receiveTurn) tryTake() bool {
	select {
	case <-r.free:
		return true
	default:
		return false
	}
}

// judge is told, by who has the turn, after what absence a helper came back; one that
// did not in time, or helped in vain, was away for idleTurn.
func (r *receiveTurn) judge(absence time.Duration) {
	if absence < longAbsence {
		r.luck = min(r.luck+1, mostLuck)
	} else if r.luck -= 2; r.luck < 0 {
		r.luck = mostLuck / 2
		r.pauses.Store(pause)
	}
}

func (r *receiveTurn) init(helpful, manual bool) {
	r.helpful, r.luck = helpful, mostLuck/2
	r.free = make(chan struct{}, 1)
	if manual {
		r.manual = r.free
		r.give()
	}
	r.offered, r.returned = make(chan struct{}, 1), make(chan struct{}, 1)
}

// helpful reports whether help is welcome.
func (c *Config) helpful() bool {
	switch {
	case c.BusyPoll || c.Manual || c.Help == HelpNever:
		return false
	case c.Help == HelpAlways:
		return true
	}
	return runtime.GOMAXPROCS(0) <= fewProcessors
}

// Help receives and sends on the calling goroutine, callbacks included, until
// ready, or until nothing came for a moment. It asks ready after every batch of
// datagrams, and returns after a while even if they never end. It is for who waits
// for what a peer sends, before sleeping: that another goroutine receives, and wakes
// this one for every message, costs more than the message. It returns at once if
// help is not welcome, or someone else receives; after that, HelpWanted says when to
// try again.
//
// A helper that comes again soon finds the turn where it was left. Who does not,
// or knows of others who wait, calls HelpEnds.
func (e *Endpoint) Help(ready func() bool) {
	if !e.Helpful() || e.failed.Load() {
		return
	}
	r := &e.receiving
	if r.pauses.Load() > 0 {
		r.pauses.Add(-1)
		leave(r.returned)
		return
	}
	if !r.tryTake() {
		r.asked.Store(true)
		return
	}
	defer r.give()
	r.loans.Add(1)
	began := e.now()
	if r.left != 0 {
		r.judge(began.Sub(r.left))
		r.left = 0
	}
	for !ready() {
		n, err := e.transport.Recv(e.datagrams, helpPatience)
		if err == nil && n > 0 {
			err = e.take(n)
		}
		if n == 0 || err != nil { // which the receiving goroutine will meet again
			r.judge(idleTurn)
			leave(r.returned)
			return
		}
		if r.batchAt.Sub(began) >= helpMost {
			leave(r.returned)
			return
		}
	}
	r.left = e.now()
}

// Helpful reports whether Help does something.
func (e *Endpoint) Helpful() bool { return e != nil && e.receiving.helpful }

// HelpWanted returns where a token appears when Help may be called again.
func (e *Endpoint) HelpWanted() <-chan struct{} {
	if e == nil {
		return nil
	}
	return e.receiving.offered
}

// HelpEnds makes the endpoint's own goroutine receive again, if it does not.
func (e *Endpoint) HelpEnds() {
	if e.Helpful() {
		leave(e.receiving.returned)
	}
}

// lend gives the turn to whoever asked for it, until it lies idle.
func (e *Endpoint) lend(idle *time.Timer) {
	r := &e.receiving
	select {
	case <-r.returned: // of an earlier loan
	default:
	}
	loans := r.loans.Load()
	r.left = 0
	r.give()
	leave(r.offered)
	for {
		atOnce := false
		idle.Reset(idleTurn)
		select {
		case <-r.returned:
			atOnce = true
		case <-e.stop:
			r.take() // the helper is about to meet the end of the transport
			return
		case <-idle.C:
		}
		now := r.loans.Load()
		if (atOnce || now == loans) && r.tryTake() {
			r.asked.Store(false)
			if !atOnce {
				r.judge(idleTurn)
			}
			return
		}
		loans = now
	}
}
