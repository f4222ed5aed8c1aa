package bench

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/verbs"
)

// operations posts operations as work requests, each on the queue pair that its slot belongs to.
type operations struct {
	l      *lanes
	plan   Plan
	ops    []*Op  // by slot
	rounds []byte // of each slot, as the other side is told
	back   *arrivals
	load   atomic.Pointer[Load] // nil: nothing was posted
}

// done is how many operations of the turn are.
func (l *lanes) done() uint64 {
	o := l.out.Load()
	if o == nil || o.load.Load() == nil {
		return 0
	}
	n, _, _ := o.load.Load().Progress()
	return n
}

// operations prepares a poster for a turn.
func (l *lanes) operations(p Plan) *operations {
	o := &operations{l: l, plan: p, ops: make([]*Op, p.slots()), rounds: make([]byte, 4*p.slots()), back: newArrivals(p)}
	l.out.Store(o)
	return o
}

func (o *operations) Post(op *Op) (complete bool, err error) {
	l := o.l
	depth := int(o.plan.Depth)
	q := l.all[op.Slot/depth]
	l.mu.Lock()
	if o.ops[op.Slot] == nil {
		o.ops[op.Slot] = op
		o.load.Store(op.load)
	}
	binary.LittleEndian.PutUint32(o.rounds[4*op.Slot:], op.Round)
	q.pending = o.works(q.pending, op, idOf(q.index, op.Slot%depth))
	if q.owed != nil {
		q.owed[(q.first+q.owes)%len(q.owed)] = op
		q.owes++
	}
	if l.batching {
		l.touch(q)
	} else {
		l.flush(q)
	}
	l.unlock()
	return false, nil
}

// works adds the work requests of an operation.
func (o *operations) works(to []verbs.Work, op *Op, id uint64) []verbs.Work {
	l := o.l
	w := verbs.Work{ID: id, STag: l.key.STag, TO: l.key.Offset + uint64(o.plan.slotAt(op.Slot)), Data: op.Bytes}
	switch l.verb {
	case VerbWrite:
		w.Op = verbs.OpWrite
	case VerbRead:
		w.Op = verbs.OpRead
	case VerbSend:
		w.ID, w.Op, w.Silent = quiet, verbs.OpSend, true
	case VerbFetchAdd:
		w.Op, w.Data, w.Operand = verbs.OpFetchAdd, nil, 1
	case VerbCompareSwap:
		w.Op, w.Data, w.Compare, w.Operand = verbs.OpCompareSwap, nil, uint64(op.Round-1), uint64(op.Round)
	case VerbFlush:
		flush := verbs.Work{ID: id, Op: verbs.OpFlush, STag: w.STag, TO: w.TO, Length: o.plan.Size, Global: true}
		w.ID, w.Op, w.Silent = quiet, verbs.OpWrite, true
		to = append(to, w)
		w = flush
	}
	if !l.notes {
		return append(to, w)
	}
	w.ID, w.Silent = quiet, true
	// Behind a fence the answer to a Flush has come.
	return append(to, w, verbs.Work{ID: quiet, Op: verbs.OpImmediate, Silent: true, Fence: l.verb == VerbFlush, Payload: immediate(uint32(op.Slot), op.Round)})
}

// completed takes the completion of a request, looks at what it brought, and has the operation posted again.
func (o *operations) completed(c *verbs.Completion) {
	op := o.ops[o.l.slot(c.ID)]
	if c.Err == nil && o.plan.Verify != VerifyOff {
		switch o.l.verb {
		case VerbRead:
			o.back.compare(op.Bytes, op.Slot, 0, op.Round)
		case VerbFetchAdd, VerbCompareSwap:
			if want := uint64(op.Round - 1); c.Old != want {
				o.back.found(mismatch{op.Slot, op.Round, 0, want, c.Old})
			}
		}
	}
	op.Done(c.Err)
}

func (o *operations) report(c *Counts) { o.back.report(c) }

// Wait returns when everything is at the other side, which is then told how often each slot was used, unless
// it has seen that itself. What has not come yet the answer to a Read comes behind.
func (o *operations) Wait(ctx context.Context) error {
	l := o.l
	if l.credits() || o.load.Load() == nil {
		return nil
	}
	w := &waiter{done: make(chan struct{})}
	behind := l.all
	if l.verb.answered() {
		behind = behind[:1]
	}
	w.left = len(behind) + 1
	l.waiter.Store(w)
	for i, q := range behind {
		var list []verbs.Work
		if i == 0 {
			list = append(list, verbs.Work{ID: awaited, Op: verbs.OpWrite, STag: l.key.STag, TO: l.key.Offset + uint64(o.plan.completionAt(0)), Data: o.rounds})
		}
		list = append(list, verbs.Work{ID: awaited, Op: verbs.OpRead, STag: l.key.STag, TO: l.key.Offset})
		n, err := q.qp.PostList(list)
		for ; n < len(list); n++ {
			w.completed(err)
		}
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waiter waits for several requests.
type waiter struct {
	mu   sync.Mutex
	left int
	err  error
	done chan struct{}
}

func (w *waiter) completed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	if w.left--; w.left == 0 {
		close(w.done)
	}
}

// expect makes the memory ready for the other side's operations, and looks at what comes.
func (l *lanes) expect(p Plan) *arrivals {
	in := newArrivals(p)
	if l.region != nil {
		clear(l.memory[completionsAt:p.dataAt()])
		for slot := range in.rounds {
			data := l.memory[p.slotAt(slot):][:p.Size]
			switch {
			case l.verb == VerbRead:
				patternOf(p.Verify, slot, 0).fill(data)
			case p.Verify != VerifyOff:
				clear(data) // of another turn, which wrote the same
			}
		}
	}
	l.see()
	l.in.Store(in)
	return in
}

// see has this goroutine see what those that receive have placed, and them what this one has written, and has
// those that look be done with what they have seen.
func (l *lanes) see() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.all {
		if q.qp != nil {
			q.qp.Room()
		}
	}
}

// settle looks at what the other side did without a word. It has told how often it used each slot.
func (l *lanes) settle(in *arrivals) {
	if l.credits() || l.region == nil {
		return
	}
	l.see()
	p := in.plan
	for slot := range in.rounds {
		round := binary.LittleEndian.Uint32(l.memory[p.completionAt(slot):])
		in.arrived.Add(uint64(round))
		if round == 0 || p.Verify == VerifyOff {
			continue
		}
		data := l.memory[p.slotAt(slot):][:p.Size]
		switch l.verb {
		case VerbWrite, VerbFlush:
			in.compare(data, slot, round, round)
		case VerbFetchAdd, VerbCompareSwap:
			// Atomic operations see a word as the processor does.
			if got := binary.NativeEndian.Uint64(data); got != uint64(round) {
				in.found(mismatch{slot, round, 0, uint64(round), got})
			}
		}
	}
}
