package sched

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

var errCallback, errClosed = errors.New("callback did not return"), fmt.Errorf("over: %w", net.ErrClosed)

// item has work that is counted: wanted by who queues it, done by who serves it.
type item struct {
	entry        Entry[*item]
	mu           sync.Mutex // as a connection's
	wanted, done int
	deadline     ack.Instant // Never: none
	expired      int
	late         time.Duration // how long after its deadline it expired, at most
}

// model is an engine whose work is to count. Who holds a turn is checked at each call.
type model struct {
	t     *testing.T
	s     Scheduler[*item]
	began time.Time
	items []*item
	in    chan *item // datagrams: each wants something of an item

	receiving, sending atomic.Int32 // goroutines that are in there
	batches, applying  atomic.Int64 // that began, and which of them is being applied; 0: none
	closed             atomic.Bool  // Close returned
	down               chan struct{}
	ended              error // what Receive says then
	answers, delivered atomic.Int64
	batch              int
	abandoned, broken  atomic.Int32
	unanswered         bool   // nobody waits for what is served, and so nothing is delivered
	came               int    // datagrams
	owes               bool   // a reply; of who has the turn to receive
	slow               func() // in every call that is one side's
	blocks             func() // nil: the transport holds up no Flush
}

func newModel(t *testing.T, cfg Config, items int) *model {
	m := &model{t: t, began: time.Now(), in: make(chan *item, 1000), down: make(chan struct{}), ended: errClosed, slow: func() {}}
	cfg.ErrCallback, cfg.ErrClosed = errCallback, errClosed
	m.s.Init(m, cfg)
	for range items {
		i := &item{deadline: Never}
		i.entry.Init(i)
		m.items = append(m.items, i)
	}
	return m
}

func (m *model) Now() ack.Instant { return ack.Instant(time.Since(m.began)) + 1 }

// alone fails the test if somebody else is in there, or the scheduler is closed.
func (m *model) alone(in *atomic.Int32, what string) func() {
	if n := in.Add(1); n != 1 {
		m.t.Errorf("%d goroutines in %s", n, what)
	}
	if m.closed.Load() {
		m.t.Errorf("%s after Close", what)
	}
	m.slow()
	return func() { in.Add(-1) }
}

func (m *model) Receive(wait time.Duration) (int, error) {
	defer m.alone(&m.receiving, "Receive")()
	var over <-chan time.Time
	if wait >= 0 {
		over = time.After(wait)
	}
	select {
	case <-m.down:
		return 0, m.ended
	default:
	}
	if len(m.in) > 0 { // also if there is no time
		return 1, nil
	}
	select {
	case i := <-m.in:
		m.in <- i // for Apply; there is but one who receives
		return 1, nil
	case <-over:
		return 0, nil
	case <-m.down:
		return 0, m.ended
	}
}

func (m *model) Apply(n int) (bool, error) {
	defer m.alone(&m.receiving, "Apply")()
	m.applying.Store(m.batches.Add(1))
	defer m.applying.Store(0)
	for range len(m.in) {
		m.want(<-m.in, false)
		m.came++
		m.owes = m.owes || m.came%2 != 0
	}
	return m.owes, nil
}

// want gives an item work.
func (m *model) want(i *item, work bool) {
	i.mu.Lock()
	i.wanted++
	inline := i.wanted%2 == 0
	m.s.Queue(&i.entry)
	i.mu.Unlock()
	if work {
		m.s.Work(inline)
	}
}

func (m *model) Reply() {
	defer m.alone(&m.sending, "Reply")()
	if !m.owes {
		m.t.Error("a reply without a reason")
	}
	m.owes = false
}

func (m *model) Serve(i *item, now ack.Instant) bool {
	defer m.alone(&m.sending, "Serve")()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.wanted > i.done {
		i.done++
		m.batch++
		if !m.unanswered {
			m.answers.Add(1)
			m.s.Kick()
		}
	}
	return i.wanted == i.done
}

func (m *model) Flush() {
	defer m.alone(&m.sending, "Flush")()
	if m.blocks != nil {
		m.blocks()
	}
	m.batch = 0
}

func (m *model) Drop() { m.batch = 0 }

func (m *model) Expire(i *item, now ack.Instant) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.deadline <= now { // else it has moved on
		i.expired++
		i.late = max(i.late, now.Sub(i.deadline))
		i.deadline = Never
	}
}

// arm moves the deadline of an item.
func (m *model) arm(i *item, in time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := m.Now()
	i.deadline = now.Add(in)
	m.s.Arm(&i.entry, now, i.deadline)
}

func (m *model) Deliver()          { m.delivered.Store(m.answers.Load()) }
func (m *model) Broken(error)      { m.broken.Add(1) }
func (m *model) Abandon(err error) { m.abandoned.Add(1) }

func (m *model) close() {
	m.s.Close(func() {}, func() error { close(m.down); return nil }, func() { m.Deliver() })
	m.closed.Store(true)
}

// check fails the test if something was forgotten. Everything has come to rest.
func (m *model) check() {
	m.t.Helper()
	for n, i := range m.items {
		i.mu.Lock()
		if i.wanted != i.done {
			m.t.Errorf("item %d: %d of %d were served", n, i.done, i.wanted)
		}
		if i.deadline != Never {
			m.t.Errorf("item %d: its deadline %v was forgotten, it is %v", n, i.deadline, m.Now())
		}
		if i.late > 3*atATime && m.blocks == nil {
			m.t.Errorf("item %d: a deadline was noticed after %v", n, i.late)
		}
		i.mu.Unlock()
	}
	if m.owes {
		m.t.Error("a reply was forgotten")
	}
	if a, d := m.answers.Load(), m.delivered.Load(); a != d {
		m.t.Errorf("%d of %d answers were delivered", d, a)
	}
}

type mode struct {
	name string
	cfg  Config
	own  bool
}

var modes = []mode{
	{"own", Config{}, true},
	{"lend", Config{Lend: true}, true},
	{"manual", Config{}, false},
	{"manual, two drive", Config{}, false},
}

// begin starts what drives a scheduler of that mode. The manual ones are driven by
// goroutines that wait for stop.
func (m *model) begin(mode mode, stop <-chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	if mode.own {
		m.s.Start(false)
		return &wg
	}
	for range 1 + len(mode.name)/10 {
		wg.Go(func() {
			var w Waiter
			w.Init()
			m.s.Await(context.Background(), &w, func() bool { return false }, stop, nil)
		})
	}
	return &wg
}

// TestRandomInterleavings: whatever happens at the same time, nobody shares a turn,
// everything queued is served, each deadline is noticed, and each answer delivered.
func TestRandomInterleavings(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for round := range rounds {
		for _, mode := range modes {
			fixture.Bubble(t, fmt.Sprintf("%s, seed %d", mode.name, seed+uint64(round)), func(t *testing.T) { interleave(t, mode, seed+uint64(round), false) })
		}
	}
}

// TestRandomInterleavingsOfBlockedSends is TestRandomInterleavings over a transport that holds up the goroutine that sends, now and
// then, for longer than the receiving one waits for its turn (N1).
func TestRandomInterleavingsOfBlockedSends(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		for _, mode := range modes {
			fixture.Bubble(t, fmt.Sprintf("%s, seed %d", mode.name, seed+uint64(round)), func(t *testing.T) { interleave(t, mode, seed+uint64(round), true) })
		}
	}
}

// interleave has some goroutines do at random all that can be done with a scheduler.
func interleave(t *testing.T, mode mode, seed uint64, blocks bool) {
	m := newModel(t, mode.cfg, 1+int(seed%7))
	longest := time.Duration(0)
	if blocks {
		longest = 2 * claimFor
		m.blocks = func() {
			if rand.IntN(4) == 0 {
				time.Sleep(rand.N(longest))
			}
		}
	}
	// Yielding is what interleaves: time of a bubble passes only when all wait.
	m.slow = func() {
		for range rand.IntN(3) {
			runtime.Gosched()
		}
	}
	stop := make(chan struct{})
	drivers := m.begin(mode, stop)
	var actors sync.WaitGroup
	for a := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(a)))
		actors.Go(func() {
			var w Waiter
			w.Init()
			for range 60 {
				i := m.items[r.IntN(len(m.items))]
				switch r.IntN(8) {
				case 0, 1:
					m.want(i, true)
				case 2, 3:
					m.in <- i
				case 4:
					m.arm(i, time.Duration(r.IntN(3000))*time.Microsecond)
				case 5:
					m.s.Progress(time.Duration(r.IntN(3)) * time.Microsecond)
				case 6:
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(500))*time.Microsecond)
					was := i.doneSoFar()
					m.s.Await(ctx, &w, func() bool { return i.doneSoFar() > was }, nil, nil)
					cancel()
				case 7:
					began := m.batches.Load()
					m.s.AfterBatch(func() {
						// Another one may begin while f is called.
						if now := m.applying.Load(); now != 0 && now <= began {
							t.Error("after a batch, within that batch")
						}
					})
				}
				if r.IntN(4) == 0 {
					time.Sleep(time.Duration(r.IntN(200)) * time.Microsecond)
				}
			}
		})
	}
	actors.Wait()
	time.Sleep(20*time.Millisecond + 1000*longest) // longer than any deadline, and than all that is blocked
	synctest.Wait()
	m.check()
	close(stop)
	drivers.Wait()
	m.close()
	synctest.Wait()
}

func (i *item) doneSoFar() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.done
}

// TestCloseAtAnyMoment: Close returns, and nobody calls the engine afterwards.
func TestCloseAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for round := range rounds {
		for _, mode := range modes {
			fixture.Bubble(t, fmt.Sprintf("%s, seed %d, round %d", mode.name, seed, round), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(round)))
				m := newModel(t, mode.cfg, 3)
				m.slow = runtime.Gosched
				drivers := m.begin(mode, nil)
				var actors sync.WaitGroup
				for range 3 {
					i := m.items[r.IntN(3)]
					pauses := r.IntN(50)
					actors.Go(func() {
						var w Waiter
						w.Init()
						for n := range 50 {
							m.want(i, true)
							m.arm(i, time.Microsecond)
							if n%3 == 0 {
								m.s.Await(context.Background(), &w, func() bool { return i.doneSoFar() >= n }, m.down, nil)
							}
							if n == pauses {
								time.Sleep(time.Microsecond)
							}
						}
					})
				}
				time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
				m.close()
				if _, err := m.s.Progress(0); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Progress after Close: %v", err)
				}
				actors.Wait()
				drivers.Wait()
			})
		}
	}
}
