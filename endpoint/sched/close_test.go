package sched

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestClose: what the farewell queues is sent before the transport ends, whoever drives,
// Close says how that ended, and what Receive returned last is given back.
func TestClose(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 3)
			broke := errors.New("would not end")
			var order []string
			m.receive = func(wait time.Duration) (int, error) {
				if wait == 0 {
					order = append(order, "give back")
				}
				return m.model.Receive(wait)
			}
			if own {
				m.s.Start(false)
			}
			m.serve = func(i *item) bool {
				order = append(order, "send")
				return m.model.Serve(i, m.Now())
			}
			began := time.Now()
			err := m.s.Close(func() {
				order = append(order, "farewell")
				for _, i := range m.items {
					m.need(i)
				}
			}, func() error {
				order = append(order, "transport")
				close(m.down)
				return broke
			}, func() {
				if order = append(order, "end"); m.s.Over() && own {
					t.Error("over before the end")
				}
			})
			if err != broke || time.Since(began) > 0 {
				t.Errorf("own goroutines %v: %v, after %v", own, err, time.Since(began))
			}
			if want := []string{"farewell", "send", "send", "send", "transport", "give back", "end"}; !slices.Equal(order, want) {
				t.Errorf("own goroutines %v: %v", own, order)
			}
			if !m.s.Over() {
				t.Errorf("own goroutines %v: not over", own)
			}
			if err := m.s.Close(nil, nil, nil); err != nil {
				t.Errorf("closed again: %v", err)
			}
			m.closed.Store(true)
			if n, err := m.s.Progress(Forever); n != 0 || err != errClosed {
				t.Errorf("own goroutines %v: Progress after Close: %d, %v", own, n, err)
			}
			m.check()
		})
	}
}

// TestCloseWaitsForTheFirst: who closes again waits until everything has ended.
func TestCloseWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		began := time.Now()
		go m.s.Close(func() {}, func() error { return nil }, func() { time.Sleep(time.Second) })
		synctest.Wait()
		if m.s.Close(nil, nil, nil); time.Since(began) != time.Second {
			t.Errorf("closed again after %v", time.Since(began))
		}
	})
}

// TestFarewellAfterTheBatch: it is called when no batch is being applied, whoever drives.
func TestFarewellAfterTheBatch(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 1)
			var applying atomic.Bool
			m.apply = func(int) (bool, error) {
				<-m.in
				applying.Store(true)
				time.Sleep(time.Second)
				applying.Store(false)
				return false, nil
			}
			if own {
				m.s.Start(false)
			} else {
				go m.s.Progress(Forever)
			}
			m.in <- m.items[0]
			synctest.Wait()
			called := false
			m.s.Close(func() {
				if called = true; applying.Load() {
					t.Errorf("own goroutines %v: farewell amid a batch", own)
				}
			}, func() error { close(m.down); return nil }, func() {})
			if !called {
				t.Errorf("own goroutines %v: no farewell", own)
			}
		})
	}
}

// TestLastIsSent: Close has sent what is queued although others hold up the turn to
// send, but not for longer than a moment.
func TestLastIsSent(t *testing.T) {
	const look = farewellWait / 100
	const others = farewellWait/2 + look/2
	for _, c := range []struct {
		name  string
		begin func(m *script)
		after time.Duration
		sent  int
	}{
		{"another sends", func(m *script) {
			m.s.sending.mu.Lock()
			time.AfterFunc(others, m.s.sending.mu.Unlock)
		}, others, 2},
		{"the turn is claimed", func(m *script) {
			m.serve = func(i *item) bool {
				if i == m.items[0] {
					m.s.sending.claimed.Store(true)
					time.AfterFunc(others, func() { m.s.sending.claimed.Store(false) })
				}
				return m.model.Serve(i, m.Now())
			}
		}, others, 2},
		{"the transport is stuck", func(m *script) {
			m.s.sending.mu.Lock()
			go func() {
				<-m.down
				m.s.sending.mu.Unlock()
			}()
		}, farewellWait, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 2)
			m.s.Start(false)
			synctest.Wait()
			c.begin(m)
			began := time.Now()
			m.s.Close(func() {
				m.need(m.items[0])
				m.need(m.items[1])
			}, func() error {
				took := time.Since(began)
				if sent := m.items[0].doneSoFar() + m.items[1].doneSoFar(); sent != c.sent || took < c.after || took >= c.after+look {
					t.Errorf("%s: %d were sent in %v, want %d in %v", c.name, sent, took, c.sent, c.after)
				}
				close(m.down)
				return nil
			}, func() {})
		})
	}
}

// TestEndAfterAll: end is called when no goroutine is in the engine any more (rule 5).
func TestEndAfterAll(t *testing.T) {
	var in atomic.Int32
	lingers := func(m *script) func(time.Duration) (int, error) {
		return func(time.Duration) (int, error) {
			in.Add(1)
			defer in.Add(-1)
			select {
			case <-m.in:
				return 1, nil
			case <-m.down:
				time.Sleep(time.Second)
				return 0, m.ended
			}
		}
	}
	for _, c := range []struct {
		name  string
		cfg   Config
		begin func(m *script)
	}{
		{"who receives", Config{}, func(m *script) { m.receive = lingers(m); m.s.Start(false) }},
		{"helper", Config{Lend: true}, func(m *script) {
			m.receive = lingers(m)
			m.apply = func(int) (bool, error) { return false, nil }
			m.s.Start(false)
			go func() {
				var w Waiter
				w.Init()
				m.s.Await(context.Background(), &w, func() bool { return false }, nil, nil)
			}()
			synctest.Wait()
			m.in <- m.items[0] // and then the turn is lent
			synctest.Wait()
			if m.s.loans.Load() != 1 || in.Load() != 1 {
				t.Errorf("%d loans, and %d receive", m.s.loans.Load(), in.Load())
			}
		}},
		{"who sends", Config{}, func(m *script) {
			m.s.Start(false)
			m.flush = func() {
				in.Add(1)
				defer in.Add(-1)
				<-m.down
				for range 1000 { // no time passes while Close waits for a mutex
					runtime.Gosched()
				}
			}
			go m.queue(m.items[0], true)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, c.cfg, 1)
			c.begin(m)
			synctest.Wait()
			if in.Load() == 0 {
				t.Errorf("%s is not there", c.name)
			}
			m.s.Close(func() {}, func() error { close(m.down); return nil }, func() {
				if in.Load() != 0 {
					t.Errorf("%s is still there", c.name)
				}
			})
			synctest.Wait()
		})
	}
}

// TestCloseGoesOn: whichever call of Close does not return, the others are made.
func TestCloseGoesOn(t *testing.T) {
	for _, own := range []bool{true, false} {
		for never := range 3 {
			synctest.Test(t, func(t *testing.T) {
				m := newScript(t, Config{}, 1)
				if own {
					m.s.Start(false)
				}
				var made []int
				call := func(n int) {
					made = append(made, n)
					if n == never {
						runtime.Goexit()
					}
				}
				leaves(func() {
					m.s.Close(func() { call(0) }, func() error { close(m.down); call(1); return nil }, func() { call(2) })
				})
				if want := []int{0, 1, 2}; !slices.Equal(made, want) || !m.s.Over() {
					t.Errorf("own goroutines %v, call %d does not return: made were %v, and it is over: %v", own, never, made, m.s.Over())
				}
			})
		}
	}
}
