package round

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/oracle"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// flow is a sequence of transactions in progress.
type flow struct {
	w     *world
	index int
	plan  *Flow
	own   *oracle.Flow
	free  chan int
	slots []posted

	mu       sync.Mutex
	dice     worlds.Dice
	begun    int
	pending  int
	sequence uint64
	moved    time.Time // when something went on
	stalled  bool
	lastErr  error
	lastDone uint64
}

// posted is a slot's transaction.
type posted struct {
	tx       dgrdma.Transaction
	bytes    []byte
	number   uint32
	life     int // of the node that posts
	sequence uint64
}

// usedUp is what the bytes of a transaction are when it is done: nothing may send them any more.
const usedUp = 0

func newFlow(w *world, index int, p *Flow) *flow {
	f := &flow{w: w, index: index, plan: p, free: make(chan int, p.Slots), slots: make([]posted, p.Slots), moved: w.began}
	f.dice = worlds.NewDice(w.plan.Seed, uint64(rollFlow+1000*index)<<20)
	f.own = w.nodes[p.To].book.Add(oracle.Flow{
		ID: index, Src: idOf(p.From), Size: p.Size, Slots: p.Slots, Ordered: p.Ordered, Swallowed: p.Swallowed,
		Unproven: w.plan.profile(p.From).NoAcks,
	})
	for i := range f.slots {
		s := &f.slots[i]
		s.bytes = make([]byte, p.Size)
		s.tx.Cookie, s.tx.Fence, s.tx.Done = i, p.Ordered, f.done
		f.free <- i
	}
	return f
}

func (f *flow) String() string {
	return fmt.Sprintf("flow %d from %d to %d", f.index, f.plan.From, f.plan.To)
}

// run posts until the round is over.
func (f *flow) run() {
	f.w.sleep(f.plan.Start)
	for n := 1; f.plan.Most == 0 || n <= f.plan.Most; n++ {
		var i int
		select {
		case i = <-f.free:
		case <-f.w.over.Done():
			return
		}
		for f.w.over.Err() == nil && !f.post(i) {
			f.w.sleep(f.backOff())
		}
		if f.w.over.Err() != nil {
			return
		}
		if f.plan.Pause > 0 && n%f.plan.Burst == 0 {
			f.w.sleep(f.plan.Pause)
		}
	}
}

func (f *flow) backOff() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.Span(100*time.Microsecond, 20*time.Millisecond)
}

// draw draws the cuts of a transaction.
func (f *flow) draw() (cuts []oracle.Cut) {
	grain, native := 4, f.w.plan.Kind.Native()
	if !native {
		grain = 16
	}
	at := 0
	for range f.plan.Cuts {
		room := f.plan.Size - at
		if room < grain {
			break
		}
		c := oracle.Cut{Off: at, Len: f.dice.Between(1, room)}
		if f.plan.Cuts > 1 {
			c.Len = f.dice.Between(1, max(1, min(room, 2*f.plan.Size/f.plan.Cuts)))
		}
		switch {
		case !native:
			c.Len = (c.Len + 3) &^ 3
		case f.dice.Chance(0.05):
			c.Len = 0
		case f.dice.Chance(0.3):
			shift := f.dice.IntN(grain)
			c.Off, c.Len = c.Off+shift, max(0, c.Len-shift)
		}
		cuts = append(cuts, c)
		at = (c.Off + c.Len + f.dice.IntN(3)*grain + grain - 1) / grain * grain
	}
	return cuts
}

// post posts the next transaction in a slot. Not ok: not now.
func (f *flow) post(i int) (ok bool) {
	from, to := f.w.nodes[f.plan.From], f.w.nodes[f.plan.To]
	c, ok := from.conn(to)
	if !ok || !to.book.Free(f.own, i) {
		return false
	}
	s := &f.slots[i]
	life := c.Life()
	f.mu.Lock()
	f.sequence++
	s.sequence, s.life = f.sequence, from.lives()
	cuts := f.draw()
	s.tx.Urgent = f.plan.Urgent && f.dice.Chance(0.2)
	f.begun++
	f.pending++
	f.mu.Unlock()
	p := to.book.Next(f.own, i, s.sequence, c.epoch<<32|uint64(life), cuts)
	s.number = p.Number
	s.tx.Completion = dgrdma.Word(p.Word, p.Number)
	s.tx.Segments = s.tx.Segments[:0]
	for _, c := range cuts {
		b := s.bytes[c.Off : c.Off+c.Len]
		copy(b, p.Bytes[c.Off:])
		s.tx.Segments = append(s.tx.Segments, dgrdma.Segment{Addr: p.Data + uint32(c.Off), Bytes: b})
	}
	err := c.PostTo(life, &s.tx)
	if err == nil {
		return true
	}
	to.book.Withdraw(f.own, i)
	f.mu.Lock()
	f.begun--
	f.pending--
	f.mu.Unlock()
	f.refused(from, to, c, err)
	return false
}

// refused judges an error of Post.
func (f *flow) refused(from, to *node, c known, err error) {
	switch {
	case errors.Is(err, dgrdma.ErrQueueFull) && from.plan.Queue > 0:
		return
	case !f.w.excuses(err):
		f.w.violatef("%v: post: %v", f, err)
		return
	case errors.Is(err, dgrdma.ErrPeerClosed), errors.Is(err, dgrdma.ErrPeerDown):
		c.Reset(0) // as a program does that wants to go on; it may be closed by now
	}
	from.mu.Lock()
	if k, ok := from.conns[to.index]; ok && k == c && errors.Is(c.Err(), dgrdma.ErrClosed) {
		delete(from.conns, to.index) // a link gave it up, or Drop did
	}
	from.mu.Unlock()
}

// done is Done of all.
func (f *flow) done(tx *dgrdma.Transaction, err error) {
	i := tx.Cookie.(int)
	s := &f.slots[i]
	f.w.nodes[f.plan.To].book.Done(f.own, i, s.number, err)
	switch {
	case err == nil:
		f.w.counts.Done.Add(1)
		f.w.counts.Bytes.Add(uint64(tx.Bytes()))
	case !f.w.excuses(err):
		f.w.violatef("%v: transaction %d failed: %v", f, s.number, err)
	}
	if err != nil {
		f.w.counts.Failed.Add(1)
	}
	if f.w.nodes[f.plan.From].hasEnded(s.life) {
		f.w.violatef("%v: transaction %d is reported done behind Close", f, s.number)
	}
	for j := range s.bytes {
		s.bytes[j] = usedUp
	}
	f.mu.Lock()
	f.pending--
	f.moved = time.Now()
	f.lastErr, f.lastDone = err, s.sequence
	f.mu.Unlock()
	f.free <- i
}

// waiting returns how many transactions are not done.
func (f *flow) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending
}
