package sched

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestWorkQueuedAsTheTurnEnds: who finds the turn to send taken leaves its work to who
// has it, who has looked for work for the last time (rule 4).
func TestWorkQueuedAsTheTurnEnds(t *testing.T) {
	for _, holder := range []struct {
		name   string
		manual bool
		begins func(m *model, i *item) // has a turn to send begin
	}{
		{"sending goroutine", false, func(m *model, i *item) { m.queue(i, false) }},
		{"receiving goroutine", false, func(m *model, i *item) { m.in <- i }},
		{"caller", false, func(m *model, i *item) { m.queue(i, true) }},
		{"who waits", true, func(m *model, i *item) { m.queue(i, false) }},
		{"who waits, for datagrams", true, func(m *model, i *item) { m.in <- i }},
	} {
		t.Run(holder.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, Config{}, 4)
				m.unanswered = true // or the goroutine that delivers would look
				stop := make(chan struct{})
				drivers := m.begin(mode{own: !holder.manual}, stop)
				synctest.Wait()
				late := 0
				m.s.parting = func() {
					// Twice in a row, for a turn that is taken again ends as well.
					if late++; late < len(m.items) {
						m.queue(m.items[late], true)
					}
				}
				holder.begins(m, m.items[0])
				if holder.manual {
					var w Waiter
					w.Init()
					m.s.Await(context.Background(), &w, func() bool { return m.items[0].doneSoFar() > 0 }, nil, nil)
				}
				synctest.Wait()
				m.check()
				for n, i := range m.items {
					if i.doneSoFar() != 1 {
						t.Errorf("item %d was served %d times", n, i.doneSoFar())
					}
				}
				m.s.parting = nil
				close(stop)
				drivers.Wait()
				m.close()
			})
		})
	}
}

// queue gives an item work, to be served at once if that is possible.
func (m *model) queue(i *item, inline bool) {
	i.mu.Lock()
	i.wanted++
	m.s.Queue(&i.entry)
	i.mu.Unlock()
	m.s.Work(inline)
}

// TestQueueAmidATurn: an item that is queued while another goroutine takes all that is
// listed is served by one of the two (rule 4).
func TestQueueAmidATurn(t *testing.T) {
	m := newModel(t, Config{}, 2)
	m.unanswered = true
	defer m.close()
	const rounds = 20000
	var round atomic.Int64
	var both sync.WaitGroup
	for n, i := range m.items {
		both.Go(func() {
			for k := range int64(rounds) {
				round.Add(1)
				for round.Load() < 4*k+2 { // the other is here too
					runtime.Gosched()
				}
				m.queue(i, true)
				round.Add(1)
				for round.Load() < 4*k+4 {
					runtime.Gosched()
				}
				if n == 0 && m.s.pending.Load() { // for who drives
					m.s.serve()
				}
				if n == 0 && (m.items[0].doneSoFar() != int(k+1) || m.items[1].doneSoFar() != int(k+1)) {
					t.Errorf("round %d: %d and %d were served", k, m.items[0].doneSoFar(), m.items[1].doneSoFar())
					round.Store(5 * rounds)
					return
				}
			}
		})
	}
	both.Wait()
}
