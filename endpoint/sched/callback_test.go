package sched

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A callback that does not return, by where it is called.
var callbacks = []struct {
	name  string
	set   func(m *script, once func())
	sends bool // it is part of a turn to send
}{
	{"Apply", func(m *script, once func()) {
		m.apply = func(n int) (bool, error) { once(); return m.model.Apply(n) }
	}, false},
	{"Reply", func(m *script, once func()) { m.reply = func() { once(); m.model.Reply() } }, true},
	{"Serve", func(m *script, once func()) {
		m.serve = func(i *item) bool { once(); return m.model.Serve(i, m.Now()) }
	}, true},
	{"Flush", func(m *script, once func()) { m.flush = func() { once(); m.model.Flush() } }, true},
	{"Expire", func(m *script, once func()) { m.expire = func(*item) { once() } }, false},
	{"Deliver", func(m *script, once func()) { m.deliver = once }, false},
}

// TestCallbackDoesNotReturn: whoever calls it, and even if who is told of that does not
// return either, the scheduler breaks, what is pending is answered, what waits for the
// end of the batch is called, the turns are free, and Close ends all.
func TestCallbackDoesNotReturn(t *testing.T) {
	for _, own := range []bool{true, false} {
		for _, c := range callbacks {
			for _, neither := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					m := newScript(t, Config{}, 2)
					left, drops, after := 0, 0, 0
					c.set(m, func() {
						if left++; left == 1 {
							runtime.Goexit()
						}
					})
					if neither {
						m.broke = runtime.Goexit
					}
					m.drop = func() { drops++ }
					if own {
						m.s.Start(false)
					}
					m.s.AtBatchEnd(func() { after++ })
					m.need(m.items[1])
					m.arm(m.items[0], time.Millisecond)
					m.in <- m.items[0]
					time.Sleep(time.Second)
					m.s.Kick()
					for range 2 {
						if own {
							synctest.Wait()
						} else {
							leaves(func() { m.s.Progress(0) })
						}
					}
					about := func(err error) { t.Errorf("own goroutines %v, %s does not return: %v", own, c.name, err) }
					if left == 0 {
						t.Errorf("own goroutines %v: %s was not called", own, c.name)
					}
					if err := m.s.Err(); err != errCallback || m.broken.Load() != 1 {
						about(err)
					}
					if m.abandoned.Load() == 0 {
						t.Errorf("own goroutines %v, %s: what is pending was not answered", own, c.name)
					}
					if after != 1 || m.s.Batching() {
						t.Errorf("own goroutines %v, %s: what waits for the end of the batch was called %d times", own, c.name, after)
					}
					if c.sends && drops != 1 {
						t.Errorf("own goroutines %v, %s: dropped %d times", own, c.name, drops)
					}
					if !m.s.sending.mu.TryLock() {
						t.Fatalf("own goroutines %v, %s: the turn to send is taken", own, c.name)
					}
					m.s.sending.mu.Unlock()
					kept(t, m)
					if !own {
						if _, err := m.s.Progress(0); err != errCallback {
							about(err)
						}
					}
					m.close()
				})
			}
		}
	}
}

// TestCallbackOfCaller: a callback that does not return to a caller of Work breaks the
// scheduler as well.
func TestCallbackOfCaller(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 2)
			if own {
				m.s.Start(false)
				synctest.Wait()
			}
			m.serve = func(*item) bool { runtime.Goexit(); return true }
			m.need(m.items[0])
			leaves(func() { m.queue(m.items[1], true) })
			synctest.Wait()
			if m.s.Err() != errCallback || !own == (m.abandoned.Load() > 0) {
				t.Errorf("own goroutines %v: %v, and abandoned %d times", own, m.s.Err(), m.abandoned.Load())
			}
			kept(t, m)
			m.close()
		})
	}
}

// TestNextAfterTheEndOfABatch: what waits for it is called in order, each once, even if
// the one before it does not return.
func TestNextAfterTheEndOfABatch(t *testing.T) {
	m := newScript(t, Config{}, 1)
	var called []int
	for n := range 4 {
		m.s.AtBatchEnd(func() {
			if called = append(called, n); n%2 == 0 {
				runtime.Goexit()
			}
		})
	}
	m.apply = func(int) (bool, error) {
		m.s.AfterBatch(func() { called = append(called, 4) })
		if len(called) > 0 {
			t.Error("called amid a batch")
		}
		return false, nil
	}
	leaves(func() { m.s.apply(1) })
	if len(called) != 5 {
		t.Errorf("called were %v", called)
	}
	for n := range called {
		if called[n] != n {
			t.Errorf("called were %v", called)
		}
	}
	m.close()
}

// kept fails the test if the scheduler keeps an item that it has nothing to do for.
func kept(t *testing.T, m *script) {
	t.Helper()
	for what, list := range map[string][]*Entry[*item]{
		"that expired": m.s.alarm.due, "with a deadline": m.s.alarm.items, "with work": m.s.work.waiting, "being served": m.s.work.serving,
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
