package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Poster is what a load is put on.
type Poster interface {
	// Post begins an operation. It reports whether the operation is complete when it
	// returns, as with something that blocks while it has no room. If it is not, its
	// Done is called later, once, from any goroutine. A poster that waits for room
	// returns ErrInterrupted when the context ends by which it was made.
	Post(op *Op) (complete bool, err error)
	// Wait returns when all that was posted has arrived at the other side.
	Wait(ctx context.Context) error
}

// witness is a poster that looks at what its operations bring back.
type witness interface {
	// report adds what was wrong with it.
	report(c *Counts)
}

// Op is an operation that is posted again and again. No two of a load are the same.
type Op struct {
	Slot  int    // below the plan's slots; those of a peer are consecutive
	Round uint32 // how often it was posted, this time included
	Bytes []byte // what is to be written
	// Cookie is the poster's.
	Cookie any

	load     *Load
	paid     bool          // it waited for its turn at the plan's rate
	postedAt time.Duration // since the load began; 0: not timed
}

// Load keeps operations outstanding. Nothing is allocated and nobody is woken for one.
type Load struct {
	plan    Plan
	to      Poster
	ops     []Op
	idle    chan *Op   // those that wait for their turn
	times   *Histogram // of completions; nil: nobody wants to know
	timed   uint32     // of how many rounds of a slot one is timed
	began   time.Time
	elapsed time.Duration
	timer   *time.Timer // ends it; nil: nothing does
	gate    *gate       // nil: the plan has no rate

	running     atomic.Bool
	timeUp      atomic.Bool
	outstanding atomic.Int64
	done        atomic.Uint64 // operations
	drained     chan struct{} // closed when nothing is outstanding any more
	ending      chan struct{} // closed when nothing is posted any more

	mu  sync.Mutex
	err error
}

// NewLoad prepares the operations of a plan. Completion times go to times, if it is
// not nil.
func NewLoad(p Plan, to Poster, times *Histogram) *Load {
	l := &Load{plan: p, to: to, times: times, drained: make(chan struct{}), ending: make(chan struct{}), timed: timedOf(int(p.Size)), ops: make([]Op, p.slots())}
	l.idle = make(chan *Op, len(l.ops))
	if p.Rate > 0 {
		l.gate = newGate(l, p.Rate)
	}
	stride := int(p.stride())
	data := make([]byte, len(l.ops)*stride)
	for i := range l.ops {
		op := &l.ops[i]
		// Neighbours belong to different peers, so that all begin at once.
		op.Slot = i%int(p.Peers)*int(p.Depth) + i/int(p.Peers)
		op.Bytes = data[i*stride:][:p.Size:p.Size]
		op.load = l
		// Also if nobody looks at it: pages that were never written to are all one page of
		// zeros, which stays in the processor's cache.
		patternOf(p.Verify, op.Slot, 0).fill(op.Bytes)
	}
	l.running.Store(true)
	return l
}

// timedOf returns of how many operations of that size one is timed: a look at the clock
// costs as much as a small one.
func timedOf(size int) uint32 {
	if size < 4096 {
		return 8
	}
	return 1
}

// Start posts as many operations as the plan has outstanding, and keeps as many outstanding
// for that long; with 0, until Drain.
func (l *Load) Start(long time.Duration) {
	l.began = time.Now()
	if long > 0 {
		l.timer = time.AfterFunc(long, func() { // also if starting takes longer
			l.timeUp.Store(true)
			l.end()
		})
	}
	active := int(l.plan.Active)
	l.outstanding.Store(int64(active))
	if active == 0 { // it only waits
		close(l.drained)
	}
	for i := active; i < len(l.ops); i++ {
		l.idle <- &l.ops[i]
	}
	go func() {
		for i := range active {
			l.drive(&l.ops[i])
		}
	}()
}

// Over waits until nothing more is posted: the time is over, or something failed. If
// the context ends before, the error is an ErrInterrupted.
func (l *Load) Over(ctx context.Context) error {
	select {
	case <-l.ending:
	case <-ctx.Done():
		l.end()
	}
	if ctx.Err() != nil && !l.timeUp.Load() {
		return fmt.Errorf("%w after %v", ErrInterrupted, time.Since(l.began).Round(time.Millisecond))
	}
	return nil
}

// drive posts operations until one is under way that somebody else completes, or has to
// wait for its turn, or nothing more is to be posted.
func (l *Load) drive(op *Op) {
	for l.running.Load() {
		if l.gate != nil {
			if l.gate.parks(op) {
				return
			}
			if !l.running.Load() {
				break
			}
		}
		l.begin(op)
		complete, err := l.to.Post(op)
		if err != nil {
			l.fail(err)
			break
		}
		if !complete {
			return
		}
		l.count(op)
		op = l.next(op)
	}
	l.retire()
}

// Done is called by the poster when an operation is complete that was not when Post
// returned.
func (op *Op) Done(err error) {
	l := op.load
	if err != nil {
		l.fail(err)
		l.retire()
		return
	}
	l.count(op)
	l.drive(l.next(op))
}

// begin makes an operation ready for one more round.
func (l *Load) begin(op *Op) {
	op.Round++
	if l.plan.Verify != VerifyOff {
		patternOf(l.plan.Verify, op.Slot, op.Round).renew(op.Bytes)
	}
	// Not all slots in the same round: a run may have few.
	if op.postedAt = 0; l.times != nil && (op.Round+uint32(op.Slot))%l.timed == 0 {
		op.postedAt = time.Since(l.began)
	}
}

// count notes that an operation is complete.
func (l *Load) count(op *Op) {
	l.done.Add(1)
	if op.postedAt != 0 {
		l.times.Add(time.Since(l.began) - op.postedAt)
	}
}

// next returns the operation to post after one that is complete.
func (l *Load) next(op *Op) *Op {
	if int(l.plan.Active) < len(l.ops) {
		l.idle <- op
		op = <-l.idle // there is one: ours at worst
	}
	return op
}

// goesOn reports, once it is time for that, whether one more is to be posted.
func (l *Load) goesOn() bool {
	if l.gate != nil {
		return l.gate.passes()
	}
	return l.running.Load()
}

func (l *Load) retire() {
	if l.outstanding.Add(-1) == 0 {
		close(l.drained)
	}
}

func (l *Load) fail(err error) {
	l.mu.Lock()
	if l.err == nil && !errors.Is(err, ErrInterrupted) { // which Over says
		l.err = err
	}
	l.mu.Unlock()
	l.end()
}

// end lets nothing more be posted.
func (l *Load) end() {
	if l.running.CompareAndSwap(true, false) {
		close(l.ending)
		if l.gate != nil {
			l.gate.end()
		}
	}
}

// Drain lets what is outstanding finish and arrive, and returns why something failed.
func (l *Load) Drain(ctx context.Context) error {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.end()
	select {
	case <-l.drained:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	// Both errors are of one failure, if both there are.
	err = cmp.Or(err, l.to.Wait(ctx))
	l.elapsed = time.Since(l.began)
	return err
}

// Plan returns what the load was made of.
func (l *Load) Plan() Plan { return l.plan }

// Progress returns how many operations are complete, how many bytes they had, and for
// how long the load has run.
func (l *Load) Progress() (ops, bytes uint64, took time.Duration) {
	n := l.done.Load()
	return n, n * uint64(l.plan.Size), time.Since(l.began)
}

// Elapsed returns how long it took until all had arrived, when it has been drained.
func (l *Load) Elapsed() time.Duration { return l.elapsed }

func (l *Load) report(c *Counts) {
	c.Transactions, c.Bytes, _ = l.Progress()
	c.Nanoseconds = uint64(l.elapsed)
	if w, looks := l.to.(witness); looks {
		w.report(c)
	}
}
