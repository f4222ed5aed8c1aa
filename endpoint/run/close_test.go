package run

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestClose checks that what disconnect queues is sent before the transport ends, whichever
// goroutine polls. Close returns the error of that end, and what Receive returned last is
// given back.
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
				order = append(order, "disconnect")
				for _, i := range m.items {
					m.need(i)
				}
			}, func() error {
				order = append(order, "transport")
				close(m.down)
				return broke
			}, func() {
				if order = append(order, "end"); m.s.IsOver() && own {
					t.Error("over before the end")
				}
			})
			if err != broke || time.Since(began) > 0 {
				t.Errorf("own goroutines %v: %v, after %v", own, err, time.Since(began))
			}
			if want := []string{"disconnect", "send", "send", "send", "transport", "give back", "end"}; !slices.Equal(order, want) {
				t.Errorf("own goroutines %v: %v", own, order)
			}
			if !m.s.IsOver() {
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

// TestCloseWaitsForTheFirst checks that a second Close waits until everything has ended.
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

// TestDisconnectAfterBatch checks that disconnect is called when no batch is being applied,
// whichever goroutine polls.
func TestDisconnectAfterBatch(t *testing.T) {
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
					t.Errorf("own goroutines %v: disconnect during a batch", own)
				}
			}, func() error { close(m.down); return nil }, func() {})
			if !called {
				t.Errorf("own goroutines %v: no disconnect", own)
			}
		})
	}
}

// TestLastIsSent checks that Close has sent what is queued although other goroutines hold
// or claim the send lock, but does not wait for longer than a moment.
func TestLastIsSent(t *testing.T) {
	const look = disconnectWait / 100
	const others = disconnectWait/2 + look/2
	for _, c := range []struct {
		name  string
		begin func(m *script)
		after time.Duration
		sent  int
	}{
		{"another sends", func(m *script) {
			m.s.sendLock.mu.Lock()
			time.AfterFunc(others, m.s.sendLock.mu.Unlock)
		}, others, 2},
		{"the lock is claimed", func(m *script) {
			m.serve = func(i *item) bool {
				if i == m.items[0] {
					m.s.sendLock.claimed.Store(true)
					time.AfterFunc(others, func() { m.s.sendLock.claimed.Store(false) })
				}
				return m.model.Serve(i, m.Now())
			}
		}, others, 2},
		{"the transport is stuck", func(m *script) {
			m.s.sendLock.mu.Lock()
			go func() {
				<-m.down
				m.s.sendLock.mu.Unlock()
			}()
		}, disconnectWait, 0},
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

// TestEndAfterAll checks that end is called when no goroutine is in the engine any more
// (rule 5).
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
		{"receive goroutine", Config{}, func(m *script) { m.receive = lingers(m); m.s.Start(false) }},
		{"caller that polls", Config{CallerPolling: true}, func(m *script) {
			m.receive = lingers(m)
			m.apply = func(int) (bool, error) { return false, nil }
			m.s.Start(false)
			go func() {
				var w Waiter
				w.Init()
				m.s.Await(context.Background(), &w, func() bool { return false }, nil, nil)
			}()
			synctest.Wait()
			m.in <- m.items[0] // and then the receive lock is handed over
			synctest.Wait()
			if m.s.polls.Load() != 1 || in.Load() != 1 {
				t.Errorf("%d polls, and %d receive", m.s.polls.Load(), in.Load())
			}
		}},
		{"caller that sends", Config{}, func(m *script) {
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

// TestCloseAtAnyMoment checks that Close returns, and that no goroutine calls the engine
// afterwards.
func TestCloseAtAnyMoment(t *testing.T) {
	inModes(t, 300, 60, func(t *testing.T, mode mode, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		m := newModel(t, mode.cfg, 3)
		m.slow = runtime.Gosched
		pollers := m.begin(mode, nil)
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
		pollers.Wait()
	})
}
