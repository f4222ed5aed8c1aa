package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/verbs"
)

// lanes are the queue pairs of one side of a run, and the memory that the other side's operations go to.
//
// A message needs a receive, so a sender has to know how many there are: for each message that is
// taken, its receive is posted again, and the sender is given a credit. A credit is immediate data, which comes in
// a receive, too. That there are enough of those follows: there is one for each operation that can be
// outstanding, and it is posted again before the credited operation is.
type lanes struct {
	plan   Plan // the largest that is run
	verb   Verb
	notes  bool // each operation is followed by immediate data: its slot and round
	memory []byte
	region *verbs.Region // nil: nothing of the other side's comes here
	domain *verbs.Domain
	key    verbs.Key // of the other side's memory
	source bool      // operations are posted here

	cq  *verbs.CompletionQueue // of all
	all []*lane
	in  atomic.Pointer[arrivals]
	out atomic.Pointer[operations]

	waiter atomic.Pointer[waiter]

	// What is posted amid a batch of completions is queued together, at its end.
	mu       sync.Mutex
	batching bool
	dirty    []*lane
	failed   []failure // to be told when mu is free

	stop    context.CancelFunc
	stopped chan struct{}
}

// lane is one queue pair.
type lane struct {
	of       *lanes
	index    int
	qp       *verbs.QueuePair // written under mu of lanes, which completions may come before
	receives []verbs.Receive

	// Guarded by mu of lanes.
	pending []verbs.Work
	dirty   bool
	owed    []*Op // which a credit completes, in the order in which they were posted: a ring
	first   int
	owes    int

	taken uint32 // messages for which a credit is due
	came  bool   // at a server: somebody opens it
}

type failure struct {
	op  *Op
	err error
}

// newLanes prepares them for a plan. Memory is where the other side's operations go, if there are any.
func newLanes(h *verbs.Host, p Plan, v Verb, memory []byte, source bool) (*lanes, error) {
	l := &lanes{
		plan: p, verb: v, notes: v.Noted(p.Verify), memory: memory, domain: h.NewDomain(), source: source,
		cq: verbs.NewCompletionQueue(), all: make([]*lane, p.Peers), stopped: make(chan struct{}),
	}
	if memory != nil {
		var err error
		if l.region, err = l.domain.Register(memory[:p.needs()], v.rights(), nil); err != nil {
			return nil, err
		}
	}
	for i := range l.all {
		l.all[i] = &lane{of: l, index: i}
		if source && l.credits() {
			l.all[i].owed = make([]*Op, p.Depth)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	go l.complete(ctx)
	return l, nil
}

func (l *lanes) credits() bool { return l.verb.credits(l.plan.Verify) }

// options are those with which one of them is opened.
func (l *lanes) options(i int) *verbs.Options {
	depth, holds := int(l.plan.Depth), l.verb.queues(l.plan, l.source, l.region != nil)
	o := &verbs.Options{
		Domain: l.domain, Completions: l.cq, Received: l.cq, Sends: holds.sends, Receives: max(holds.receives, 1), IRD: holds.reads, ORD: holds.reads,
		Extensions: l.verb.extensions(), PeerToPeer: l.plan.BothWays != 0,
	}
	q := l.all[i]
	receive := func(data []byte) {
		q.receives = append(q.receives, verbs.Receive{ID: idOf(i, len(q.receives)), Data: data})
	}
	for k := range depth {
		switch {
		case l.verb == VerbSend && l.region != nil:
			at := l.plan.slotAt(i*depth + k)
			receive(l.memory[at:][:l.plan.Size:l.plan.Size])
		case l.notes && l.region != nil:
			receive(nil)
		}
		if l.credits() && l.source {
			receive(nil)
		}
	}
	o.Posted = q.receives
	return o
}

// quiet is the number of requests whose completion means nothing, unless they failed.
const quiet = ^uint64(0)

// awaited is the number of the requests that a waiter waits for.
const awaited = quiet - 1

func idOf(lane, n int) uint64 { return uint64(lane)<<32 | uint64(n) }

// creditSlot is in the place of a slot in immediate data that is a credit.
const creditSlot = ^uint32(0)

func immediate(slot, n uint32) (b [8]byte) {
	binary.LittleEndian.PutUint32(b[:], slot)
	binary.LittleEndian.PutUint32(b[4:], n)
	return b
}

func fromImmediate(b [8]byte) (slot, n uint32) {
	return binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])
}

// look looks at what a message has brought, or announces: the other side writes there again when it has the credit.
func (q *lane) look(in *arrivals, c *verbs.Completion) {
	l := q.of
	first := q.index * int(l.plan.Depth)
	if c.Immediate {
		slot, round := fromImmediate(c.Payload)
		switch {
		case slot == creditSlot:
		case l.region == nil || !q.has(slot):
			in.found(mismatch{slot: first, offset: -1, got: uint64(round)})
		default:
			in.look(l.memory[l.plan.slotAt(int(slot)):][:l.plan.Size], int(slot), round)
		}
		return
	}
	data := q.receives[uint32(c.ID)].Data[:c.Length]
	if c.Length == l.plan.Size && (l.plan.Verify == VerifyOff || len(data) < 8) {
		in.arrived.Add(1) // too short to say what it is
		return
	}
	word := uint64(0)
	if len(data) >= 8 {
		word = binary.LittleEndian.Uint64(data)
	}
	slot, round := slotOf(word)
	if c.Length != l.plan.Size || !q.has(slot) {
		in.arrived.Add(1)
		in.found(mismatch{slot: first, got: word}) // it says itself whose it is
		return
	}
	in.look(data, int(slot), round)
}

// has reports whether a slot is one of the queue pair's.
func (q *lane) has(slot uint32) bool { return slot/q.of.plan.Depth == uint32(q.index) }

// complete is the goroutine that takes completions, until all queue pairs have ended.
func (l *lanes) complete(ctx context.Context) {
	defer close(l.stopped)
	done := make([]verbs.Completion, 256)
	for {
		n, err := l.cq.Wait(ctx, done)
		if err != nil {
			return
		}
		l.mu.Lock()
		l.batching = true
		l.mu.Unlock()
		for i := range n {
			l.took(&done[i])
		}
		l.endBatch()
	}
}

func (l *lanes) took(c *verbs.Completion) {
	switch {
	case c.Op == verbs.OpReceive && c.Err != nil:
		l.all[c.ID>>32].fail(c.Err)
	case c.Op == verbs.OpReceive:
		q := l.all[c.ID>>32]
		if in := l.in.Load(); in != nil {
			q.look(in, c)
		}
		// An error here is that of the queue pair, and completes all that is posted there.
		_ = c.QueuePair().PostReceive(q.receives[uint32(c.ID)])
		slot, n := fromImmediate(c.Payload)
		if !c.Immediate || slot != creditSlot {
			if q.taken++; q.taken == 1 {
				l.mu.Lock()
				l.touch(q)
				l.mu.Unlock()
			}
			return
		}
		for range n {
			op := q.settle()
			if op == nil {
				q.fail(fmt.Errorf("the other side gives credit for what was not sent"))
				return
			}
			op.Done(nil)
		}
	case c.ID == awaited:
		l.waiter.Load().completed(c.Err)
	case c.ID == quiet:
		if c.Err != nil {
			l.qpFailed(c)
		}
	default:
		if out := l.out.Load(); out != nil {
			out.completed(c)
		}
	}
}

// qpFailed finds whose a request was that has no number.
func (l *lanes) qpFailed(c *verbs.Completion) {
	for _, q := range l.all {
		l.mu.Lock()
		mine := q.qp == c.QueuePair()
		l.mu.Unlock()
		if mine {
			q.fail(c.Err)
		}
	}
}

// settle returns the operation that the next credit is for; nil: there is none.
func (q *lane) settle() *Op {
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	if q.owes == 0 {
		return nil
	}
	op := q.owed[q.first]
	q.first = (q.first + 1) % len(q.owed)
	q.owes--
	return op
}

// fail completes what no credit comes for any more.
func (q *lane) fail(err error) {
	for op := q.settle(); op != nil; op = q.settle() {
		op.Done(err)
	}
}

// touch has a queue pair looked after at the end of the batch. The caller has the lock.
func (l *lanes) touch(q *lane) {
	if !q.dirty {
		q.dirty = true
		l.dirty = append(l.dirty, q)
	}
}

// endBatch posts what came together.
func (l *lanes) endBatch() {
	l.mu.Lock()
	l.batching = false
	for _, q := range l.dirty {
		q.dirty = false
		if q.taken > 0 {
			q.pending = append(q.pending, verbs.Work{ID: quiet, Op: verbs.OpImmediate, Silent: true, Payload: immediate(creditSlot, q.taken)})
			q.taken = 0
		}
		l.flush(q)
	}
	l.dirty = l.dirty[:0]
	l.unlock()
}

// flush posts what is pending. The caller has the lock.
func (l *lanes) flush(q *lane) {
	if q.qp == nil {
		return // opened is about to post it
	}
	n, err := q.qp.PostList(q.pending)
	if err != nil {
		for ; q.owes > 0; q.owes-- {
			l.failed = append(l.failed, failure{q.owed[q.first], err})
			q.first = (q.first + 1) % len(q.owed)
		}
		for _, w := range q.pending[n:] {
			if out := l.out.Load(); w.ID != quiet && out != nil {
				l.failed = append(l.failed, failure{out.ops[l.slot(w.ID)], err})
			}
		}
	}
	clear(q.pending)
	q.pending = q.pending[:0]
}

// opened notes the queue pair of a lane. Its peer may have sent by then.
func (l *lanes) opened(i int, qp *verbs.QueuePair) {
	l.mu.Lock()
	defer l.unlock()
	l.all[i].qp = qp
	if qp != nil && len(l.all[i].pending) > 0 {
		l.flush(l.all[i])
	}
}

// unlock lets go of the lock, and then tells what could not be posted.
func (l *lanes) unlock() {
	failed := l.failed
	l.failed = nil
	l.mu.Unlock()
	for _, f := range failed {
		f.op.Done(f.err)
	}
}

func (l *lanes) slot(id uint64) int { return int(id>>32)*int(l.plan.Depth) + int(uint32(id)) }

// abort ends all of them at once.
func (l *lanes) abort() { l.each(func(q *verbs.QueuePair) { q.Abort() }) }

// atATime is how many queue pairs are opened or closed at a time: fewer than a listener keeps waiting.
const atATime = verbs.Backlog / 4

// each does something for every queue pair that was opened so far, for some of them at the same time.
func (l *lanes) each(do func(*verbs.QueuePair)) {
	var open []*verbs.QueuePair
	l.mu.Lock()
	for _, q := range l.all {
		if q.qp != nil {
			open = append(open, q.qp)
		}
	}
	l.mu.Unlock()
	var all sync.WaitGroup
	turn := make(chan struct{}, atATime)
	for _, qp := range open {
		turn <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			do(qp)
			<-turn
		}()
	}
	all.Wait()
}

// close lets go of everything. Queue pairs that are still there are aborted.
func (l *lanes) close() {
	l.abort()
	l.stop()
	<-l.stopped
	if l.region != nil {
		l.region.Invalidate()
	}
}
