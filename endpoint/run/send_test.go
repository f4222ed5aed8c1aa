package run

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSendLockTaken checks how often the send lock is taken: not at all without work, and no
// more than twice by a caller of Work, however much there is.
func TestSendLockTaken(t *testing.T) {
	m := newScript(t, Config{}, 8)
	log, ended := m.logSends(t)
	sends := func(want int, said, does string, f func()) {
		t.Helper()
		*ended = 0
		f()
		if now := takeLog(log); *ended != want || now != said {
			t.Errorf("%s: %d sends, and %q; want %d, and %q", does, *ended, now, want, said)
		}
	}
	tokens := func(want int) {
		t.Helper()
		if n := len(m.s.wake); n != want {
			t.Errorf("%d tokens for the send goroutine, want %d", n, want)
		}
		select {
		case <-m.s.wake:
		default:
		}
	}
	sends(0, "", "Work with nothing to do", func() { m.s.Work(true) })
	tokens(0)
	sends(0, "", "serve with nothing to do", m.s.serve)
	tokens(0)
	sends(1, "0 flush", "Work", func() { m.queue(m.items[0], true) })
	tokens(0)
	sends(0, "", "Work of others", func() { m.queue(m.items[0], false) })
	tokens(1)
	sends(1, "0 flush", "serve", m.s.serve)
	tokens(0)
	m.s.sendLock.mu.Lock()
	sends(0, "", "Work while another goroutine has the lock", func() { m.queue(m.items[0], true) })
	m.s.sendLock.mu.Unlock()
	tokens(0)
	sends(1, "0 flush", "its Work", func() { m.s.Work(true) })

	late := 0
	beforeUnlock := m.s.beforeUnlock
	m.s.beforeUnlock = func() {
		beforeUnlock()
		if late++; late < 4 {
			m.need(m.items[late])
		}
	}
	sends(2, "0 flush 1 flush", "Work that others add to", func() { m.queue(m.items[0], true) })
	tokens(1)
	sends(1, "2 flush", "serve that others add to", m.s.serve)
	tokens(1)
	m.s.beforeUnlock = beforeUnlock
	sends(1, "3 flush", "serve at last", m.s.serve)

	m.apply = func(int) (bool, error) { return false, nil }
	sends(0, "", "a batch", func() { m.s.apply(1) })
	unplugged := errors.New("unplugged")
	m.apply = func(int) (bool, error) { return false, unplugged }
	sends(0, "", "a batch that is the last", func() {
		if err := m.s.apply(1); err != unplugged {
			t.Error(err)
		}
	})
	m.apply = func(int) (bool, error) { m.replyPending = true; return true, unplugged }
	sends(1, "reply", "a batch to be answered", func() {
		if err := m.s.apply(1); err != unplugged {
			t.Error(err)
		}
	})
	tokens(0)
	m.apply = func(int) (bool, error) {
		m.queue(m.items[5], true)
		m.queue(m.items[6], false)
		if said := takeLog(log); said != "" || !m.items[5].entry.IsQueued() || !m.s.IsBatching() {
			t.Errorf("during a batch: %q", said)
		}
		return false, nil
	}
	sends(1, "5 6 flush", "a batch that brings work", func() { m.s.apply(1) })
	tokens(0)
	m.s.Break(unplugged)
	tokens(1)
	sends(0, "", "serve of a broken scheduler", func() {
		m.need(m.items[0])
		m.s.serve()
	})
	if m.s.pending.Load() {
		t.Error("work of a broken scheduler is pending")
	}
	tokens(0)
	m.items[0].wanted--
	m.check()
	m.close()
}

// TestWorkQueuedBeforeUnlock checks that work is served that is queued after the holder of
// the send lock looked for the last time, and before it releases the lock (rule 4).
func TestWorkQueuedBeforeUnlock(t *testing.T) {
	for _, holder := range []struct {
		name   string
		manual bool
		begins func(m *model, i *item) // has a goroutine take the send lock
	}{
		{"sending goroutine", false, func(m *model, i *item) { m.queue(i, false) }},
		{"receiving goroutine", false, func(m *model, i *item) { m.in <- i }},
		{"caller", false, func(m *model, i *item) { m.queue(i, true) }},
		{"caller of Await", true, func(m *model, i *item) { m.queue(i, false) }},
		{"caller of Await, for datagrams", true, func(m *model, i *item) { m.in <- i }},
	} {
		t.Run(holder.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, Config{}, 4)
				m.unanswered = true // or the goroutine that delivers would look
				stop := make(chan struct{})
				pollers := m.begin(mode{own: !holder.manual}, stop)
				synctest.Wait()
				late := 0
				m.s.beforeUnlock = func() {
					// Twice in a row, for a lock that is taken again is released as well.
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
				m.s.beforeUnlock = nil
				close(stop)
				pollers.Wait()
				m.close()
			})
		})
	}
}

// TestSendGoroutineSleepsWithoutWork checks that the send goroutine sleeps while there is
// nothing for it to do, be it for a day.
func TestSendGoroutineSleepsWithoutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		var woken atomic.Int32
		m.deliver = func() { woken.Add(1) }
		m.apply = func(int) (bool, error) { <-m.in; m.replyPending = true; return true, nil }
		m.s.Start(false)
		time.Sleep(24 * time.Hour)
		m.in <- m.items[0]
		synctest.Wait() // or it may find the lock held
		m.queue(m.items[0], true)
		time.Sleep(24 * time.Hour)
		if n := woken.Load(); n != 0 {
			t.Errorf("woken %d times", n)
		}
		m.close()
	})
}
