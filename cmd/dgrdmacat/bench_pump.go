package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// pump keeps transactions outstanding on connections: each one that is done is
// posted again, by who reports it. Nothing is allocated and nobody is woken
// for a transaction.
type pump struct {
	plan    plan
	slots   []pumpSlot
	idle    chan *pumpSlot // those that wait for their turn
	times   *histogram     // completion times
	timed   uint32         // of how many rounds one is timed
	began   time.Time
	elapsed time.Duration

	running     atomic.Bool
	outstanding atomic.Int64
	done        atomic.Uint64 // transactions
	drained     chan struct{} // closed when nothing is outstanding any more
	ending      chan struct{} // closed when nothing is posted any more

	mu  sync.Mutex
	err error
}

// pumpSlot is a transaction that is used again and again.
type pumpSlot struct {
	conn     *dgrdma.Conn
	t        dgrdma.Transaction
	segment  [1]dgrdma.Segment
	number   int // of the slot in the whole run
	round    uint32
	postedAt time.Duration // since pump.began; 0: not timed
}

// newPump prepares transactions to each peer.
func newPump(p plan, conns []*dgrdma.Conn, times *histogram) *pump {
	u := &pump{plan: p, times: times, drained: make(chan struct{}), ending: make(chan struct{}), timed: 1, slots: make([]pumpSlot, p.slots())}
	u.idle = make(chan *pumpSlot, len(u.slots))
	if p.Size < 4096 {
		u.timed = 8 // a look at the clock costs as much as such a transaction
	}
	stride := int(p.stride())
	data := make([]byte, len(u.slots)*stride)
	for i := range u.slots {
		s := &u.slots[i]
		// Neighbours belong to different peers, so that all begin at once.
		peer := i % int(p.Peers)
		s.number = peer*int(p.Depth) + i/int(p.Peers)
		s.conn = conns[peer]
		s.segment[0] = dgrdma.Segment{Addr: p.slotAt(s.number), Bytes: data[i*stride:][:p.Size:p.Size]}
		s.t = dgrdma.Transaction{Segments: s.segment[:], CompletionAddr: p.completionAt(s.number), Done: u.again, Cookie: s}
		if p.Verify != verifyOff {
			patternOf(p.Verify, s.number, 0).fill(s.segment[0].Bytes)
		}
	}
	u.running.Store(true)
	return u
}

// start posts as many transactions as are to be outstanding.
func (u *pump) start() {
	u.began = time.Now()
	active := int(u.plan.Active)
	u.outstanding.Store(int64(active))
	for i := active; i < len(u.slots); i++ {
		u.idle <- &u.slots[i]
	}
	for i := range active {
		if !u.running.Load() || !u.post(&u.slots[i]) {
			u.retire()
		}
	}
}

func (u *pump) post(s *pumpSlot) bool {
	s.round++
	if u.plan.Verify != verifyOff {
		patternOf(u.plan.Verify, s.number, s.round).renew(s.segment[0].Bytes)
	}
	s.t.CompletionValue = s.round
	if s.postedAt = 0; s.round%u.timed == 0 {
		s.postedAt = time.Since(u.began)
	}
	if err := s.conn.Post(&s.t); err != nil {
		u.fail(err)
		return false
	}
	return true
}

// again is called for every transaction that is done.
func (u *pump) again(t *dgrdma.Transaction, err error) {
	s := t.Cookie.(*pumpSlot)
	if err != nil {
		u.fail(err)
		u.retire()
		return
	}
	u.done.Add(1)
	if s.postedAt != 0 {
		u.times.add(time.Since(u.began) - s.postedAt)
	}
	if int(u.plan.Active) < len(u.slots) {
		u.idle <- s
		s = <-u.idle // there is one: ours at worst
	}
	if !u.running.Load() || !u.post(s) {
		u.retire()
	}
}

func (u *pump) retire() {
	if u.outstanding.Add(-1) == 0 {
		u.elapsed = time.Since(u.began)
		close(u.drained)
	}
}

func (u *pump) fail(err error) {
	u.mu.Lock()
	if u.err == nil {
		u.err = err
	}
	u.mu.Unlock()
	u.end()
}

// end lets nothing more be posted.
func (u *pump) end() {
	if u.running.CompareAndSwap(true, false) {
		close(u.ending)
	}
}

// stop lets what is outstanding finish and returns why something failed.
func (u *pump) stop(ctx context.Context) error {
	u.end()
	select {
	case <-u.drained:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

func (u *pump) report(s *seen) {
	n := u.done.Load()
	s.Transactions, s.Bytes, s.Nanoseconds = n, n*uint64(u.plan.Size), uint64(u.elapsed)
}
