package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Load keeps transactions outstanding on connections: each one that is done is
// posted again, by who reports it. Nothing is allocated and nobody is woken
// for a transaction.
type Load struct {
	plan    Plan
	slots   []slot
	idle    chan *slot // those that wait for their turn
	times   *Histogram // completion times
	timed   uint32     // of how many rounds one is timed
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

// slot is a transaction that is used again and again.
type slot struct {
	conn     *dgrdma.Conn
	t        dgrdma.Transaction
	segment  [1]dgrdma.Segment
	number   int // of the slot in the whole run
	round    uint32
	postedAt time.Duration // since Load.began; 0: not timed
}

// NewLoad prepares transactions to each peer.
func NewLoad(p Plan, conns []*dgrdma.Conn, times *Histogram) *Load {
	u := &Load{plan: p, times: times, drained: make(chan struct{}), ending: make(chan struct{}), timed: 1, slots: make([]slot, p.slots())}
	u.idle = make(chan *slot, len(u.slots))
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
		if p.Verify != VerifyOff {
			patternOf(p.Verify, s.number, 0).fill(s.segment[0].Bytes)
		}
	}
	u.running.Store(true)
	return u
}

// start posts as many transactions as are to be outstanding.
func (u *Load) start() {
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

func (u *Load) post(s *slot) bool {
	s.round++
	if u.plan.Verify != VerifyOff {
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
func (u *Load) again(t *dgrdma.Transaction, err error) {
	s := t.Cookie.(*slot)
	if err != nil {
		u.fail(err)
		u.retire()
		return
	}
	u.done.Add(1)
	if s.postedAt != 0 {
		u.times.Add(time.Since(u.began) - s.postedAt)
	}
	if int(u.plan.Active) < len(u.slots) {
		u.idle <- s
		s = <-u.idle // there is one: ours at worst
	}
	if !u.running.Load() || !u.post(s) {
		u.retire()
	}
}

func (u *Load) retire() {
	if u.outstanding.Add(-1) == 0 {
		u.elapsed = time.Since(u.began)
		close(u.drained)
	}
}

func (u *Load) fail(err error) {
	u.mu.Lock()
	if u.err == nil {
		u.err = err
	}
	u.mu.Unlock()
	u.end()
}

// end lets nothing more be posted.
func (u *Load) end() {
	if u.running.CompareAndSwap(true, false) {
		close(u.ending)
	}
}

// stop lets what is outstanding finish and returns why something failed.
func (u *Load) stop(ctx context.Context) error {
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

func (u *Load) report(s *Counts) {
	n := u.done.Load()
	s.Transactions, s.Bytes, s.Nanoseconds = n, n*uint64(u.plan.Size), uint64(u.elapsed)
}

// Progress returns how many transactions are complete, how many bytes they had, and for
// how long the load has run.
func (u *Load) Progress() (transactions, bytes uint64, took time.Duration) {
	n := u.done.Load()
	return n, n * uint64(u.plan.Size), time.Since(u.began)
}
