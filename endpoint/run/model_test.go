package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

var errPanic, errClosed = errors.New("callback panicked"), fmt.Errorf("over: %w", net.ErrClosed)

// item has work that is counted: Queue adds to wanted, Serve to done.
type item struct {
	entry        Entry[*item]
	mu           sync.Mutex // as a connection's
	wanted, done int
	deadline     ack.Instant // Never: none
	expired      int
	late         time.Duration // how long after its deadline it expired, at most
}

func (i *item) doneSoFar() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.done
}

// model is an engine whose work is to count. Each call checks that no other goroutine is in
// a call of the same lock.
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
	unanswered         bool   // what is served has no answer, and so nothing is delivered
	came               int    // datagrams
	replyPending       bool   // guarded by the receive lock
	slow               func() // in every call that is one side's
	blocks             func() // nil: the transport holds up no Flush
}

func newModel(t *testing.T, cfg Config, items int) *model {
	m := &model{t: t, began: time.Now(), in: make(chan *item, 1000), down: make(chan struct{}), ended: errClosed, slow: func() {}}
	cfg.ErrPanic, cfg.ErrClosed = errPanic, errClosed
	m.s.Init(m, cfg)
	for range items {
		i := &item{deadline: Never}
		i.entry.Init(i)
		m.items = append(m.items, i)
	}
	return m
}

func (m *model) Now() ack.Instant { return ack.Instant(time.Since(m.began)) + 1 }

// exclusive fails the test if another goroutine is in there, or the scheduler is closed.
func (m *model) exclusive(in *atomic.Int32, what string) func() {
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
	defer m.exclusive(&m.receiving, "Receive")()
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
		m.in <- i // for Apply; only one goroutine receives
		return 1, nil
	case <-over:
		return 0, nil
	case <-m.down:
		return 0, m.ended
	}
}

func (m *model) Apply(n int) (bool, error) {
	defer m.exclusive(&m.receiving, "Apply")()
	m.applying.Store(m.batches.Add(1))
	defer m.applying.Store(0)
	for range len(m.in) {
		m.want(<-m.in, false)
		m.came++
		m.replyPending = m.replyPending || m.came%2 != 0
	}
	return m.replyPending, nil
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

// need gives an item work, and calls no Work.
func (m *model) need(i *item) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted++
	m.s.Queue(&i.entry)
}

// queue gives an item work, to be served at once if inline is set and that is possible.
func (m *model) queue(i *item, inline bool) {
	i.mu.Lock()
	i.wanted++
	m.s.Queue(&i.entry)
	i.mu.Unlock()
	m.s.Work(inline)
}

func (m *model) Reply() {
	defer m.exclusive(&m.sending, "Reply")()
	if !m.replyPending {
		m.t.Error("a reply without a reason")
	}
	m.replyPending = false
}

func (m *model) Serve(i *item, now ack.Instant) bool {
	defer m.exclusive(&m.sending, "Serve")()
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
	defer m.exclusive(&m.sending, "Flush")()
	if m.blocks != nil {
		m.blocks()
	}
	m.batch = 0
}

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
		if i.late > 3*awaitPoll && m.blocks == nil {
			m.t.Errorf("item %d: a deadline was noticed after %v", n, i.late)
		}
		i.mu.Unlock()
	}
	if m.replyPending {
		m.t.Error("a reply was forgotten")
	}
	if a, d := m.answers.Load(), m.delivered.Load(); a != d {
		m.t.Errorf("%d of %d answers were delivered", d, a)
	}
}

// checkKept fails the test if the scheduler keeps an item that it has nothing to do for.
func checkKept(t *testing.T, m *script) {
	t.Helper()
	for _, l := range m.s.alarm.items[len(m.s.alarm.items):cap(m.s.alarm.items)] {
		if l.w != nil {
			t.Error("an item is kept in the list of those with a deadline")
		}
	}
	for what, list := range map[string][]*Entry[*item]{
		"that expired": m.s.alarm.due, "with work": m.s.work.waiting, "being served": m.s.work.serving,
	} {
		for _, e := range list[len(list):cap(list)] {
			if e != nil {
				t.Errorf("an item is kept in the list of those %s", what)
			}
		}
	}
	for _, e := range m.s.work.serving {
		if e != nil {
			t.Error("an item that was served is kept")
		}
	}
}

type mode struct {
	name    string
	cfg     Config
	own     bool
	pollers int // of a manual one; 0: one
}

var modes = []mode{
	{"own", Config{}, true, 0},
	{"caller polling", Config{CallerPolling: true}, true, 0},
	{"manual", Config{}, false, 1},
	{"manual, two pollers", Config{}, false, 2},
}

// begin starts the pollers of a scheduler of that mode. Those of a manual one are goroutines
// that wait for stop.
func (m *model) begin(mode mode, stop <-chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	if mode.own {
		m.s.Start(false)
		return &wg
	}
	for range max(1, mode.pollers) {
		wg.Go(func() {
			var w Waiter
			w.Init()
			m.s.Await(context.Background(), &w, func() bool { return false }, stop, nil)
		})
	}
	return &wg
}
