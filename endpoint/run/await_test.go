package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitEndsAtOnce checks that a wait that is over before it begins does not poll.
func TestAwaitEndsAtOnce(t *testing.T) {
	for _, how := range []string{"context", "over", "gone"} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 1)
			defer m.close()
			for range 40 { // select may see either first
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				token := map[string]chan struct{}{}
				switch how {
				case "context":
					cancel()
				default:
					token[how] = make(chan struct{}, 1)
					token[how] <- struct{}{}
				}
				var w Waiter
				w.Init()
				began := time.Now()
				if m.s.Await(ctx, &w, func() bool { return false }, token["over"], token["gone"]) || time.Since(began) > 0 {
					t.Fatalf("%s: ended after %v", how, time.Since(began))
				}
				cancel()
			}
			if m.s.waiters.Load() != 0 || !m.s.receiveLock.tryLock() {
				t.Fatalf("%d wait still, or poll", m.s.waiters.Load())
			}
			m.s.receiveLock.unlock()
		})
	}
}

// TestAwaitLooksAfterEachBatch checks that a poller sees what a batch brings, and what ends
// the wait, at once: although datagrams keep coming, and no Rouse reaches a waiter that is
// not asleep.
func TestAwaitLooksAfterEachBatch(t *testing.T) {
	const beat = 100 * time.Microsecond
	for _, mode := range modes[1:3] {
		for _, token := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := newScript(t, mode.cfg, 1)
				stop := make(chan struct{})
				var w Waiter
				w.Init()
				over := make(chan struct{}, 1)
				m.apply = func(n int) (bool, error) {
					if m.s.polls.Load() > 0 == mode.own && w.Asleep() {
						t.Errorf("%s: the poller is asleep", mode.name)
					}
					return m.model.Apply(n)
				}
				if mode.own {
					m.s.Start(false)
				}
				go func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(beat):
							m.in <- m.items[0]
						}
					}
				}()
				if token {
					time.AfterFunc(5*beat/2, func() { over <- struct{}{} })
				}
				began := time.Now()
				said := m.s.Await(t.Context(), &w, func() bool { return !token && m.items[0].doneSoFar() == 3 }, over, nil)
				if took := time.Since(began); said == token || took > 3*beat || !token && took != 3*beat {
					t.Errorf("%s, token %v: %v after %v", mode.name, token, said, took)
				}
				if m.s.waiters.Load() != 0 || w.Asleep() {
					t.Errorf("%s: %d wait; asleep: %v", mode.name, m.s.waiters.Load(), w.Asleep())
				}
				close(stop)
				synctest.Wait()
				m.close()
			})
		}
	}
}

// TestAwaitLooksAgain checks that the wait is over and the waiter awake whenever ready
// returns true, be it at the last look before sleep.
func TestAwaitLooksAgain(t *testing.T) {
	for _, mode := range modes[:3] {
		for yes := 1; yes <= 2; yes++ {
			t.Run(fmt.Sprintf("%s, look %d", mode.name, yes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newModel(t, mode.cfg, 1)
					if mode.own {
						m.s.Start(false)
					}
					defer m.close()
					var w Waiter
					w.Init()
					looks := 0
					if !m.s.Await(t.Context(), &w, func() bool { looks++; return looks == yes }, nil, nil) || looks != yes || w.Asleep() {
						t.Errorf("%d looks; asleep: %v", looks, w.Asleep())
					}
				})
			})
		}
	}
}

// TestAwaitOfABrokenScheduler checks that a broken scheduler is not polled, and what is
// pending is answered.
func TestAwaitOfABrokenScheduler(t *testing.T) {
	for _, answers := range []bool{false, true} {
		m := newScript(t, Config{}, 1)
		m.s.Break(errors.New("a wire was cut"))
		m.receive = func(time.Duration) (int, error) {
			t.Fatal("it is polled")
			return 0, nil
		}
		var w Waiter
		w.Init()
		if said := m.s.Await(t.Context(), &w, func() bool { return answers && m.abandoned.Load() > 0 }, nil, nil); said != answers || m.abandoned.Load() != 1 {
			t.Errorf("%v, and pending work was answered %d times", said, m.abandoned.Load())
		}
		m.receive = nil
		m.close()
	}
}

// TestDoneDoesNotPoll checks that a waiter does not request the receive lock once what it
// waited for is there, or the wait is over.
func TestDoneDoesNotPoll(t *testing.T) {
	for _, token := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{CallerPolling: true}, 1)
			m.s.Start(false)
			m.s.policy.Pauses.Store(10)
			var w Waiter
			w.Init()
			var there atomic.Bool
			over := make(chan struct{}, 1)
			time.AfterFunc(time.Millisecond, func() {
				if token {
					over <- struct{}{}
				} else {
					there.Store(true)
					w.Rouse()
				}
			})
			if said := m.s.Await(context.Background(), &w, there.Load, over, nil); said == token {
				t.Errorf("Await returns %v", said)
			}
			if left := m.s.policy.Pauses.Load(); left != 9 {
				t.Errorf("%d waits are left without polling, want 9", left)
			}
			m.close()
		})
	}
}

// TestOneTokenEndsAWait checks that one token ends a wait, whichever select takes it, and
// whatever the waiter does at that moment.
func TestOneTokenEndsAWait(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			for _, busy := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) { waitForToken(t, mode, busy) })
			}
		})
	}
}

// waitForToken has waits end while datagrams come, or do not.
func waitForToken(t *testing.T, mode mode, busy bool) {
	m := newModel(t, mode.cfg, 1)
	if mode.own {
		m.s.Start(false)
	}
	defer m.close()
	stop := make(chan struct{})
	defer close(stop)
	if busy {
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
					m.in <- m.items[0]
				}
			}
		}()
	}
	var w Waiter
	w.Init()
	for round := range 20 {
		token := make(chan struct{}, 1)
		ends := [2]chan struct{}{}
		ends[round%2] = token
		ended := make(chan struct{})
		go func() {
			m.s.Await(t.Context(), &w, func() bool { return false }, ends[0], ends[1])
			close(ended)
		}()
		time.Sleep(time.Duration(round) * 330 * time.Microsecond)
		token <- struct{}{}
		select {
		case <-ended:
		case <-time.After(3 * awaitPoll):
			t.Fatalf("datagrams come %v: the only token was sent, and the wait goes on", busy)
		}
		if w.Asleep() {
			t.Errorf("datagrams come %v: asleep after the wait", busy)
		}
	}
}

// TestRousedAsItFallsAsleep checks that what changes after the last look before sleep is
// seen.
func TestRousedAsItFallsAsleep(t *testing.T) {
	for _, mode := range modes[:3] {
		for changes := 1; changes <= 3; changes++ {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, mode.cfg, 1)
				if mode.own {
					m.s.Start(false)
				}
				defer m.close()
				var w Waiter
				w.Init()
				looks := 0
				there := false
				ready := func() bool {
					said := there
					if looks++; looks == changes {
						there = true
						w.Rouse()
					}
					return said
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if changes == 3 { // which there would not be
					time.AfterFunc(time.Millisecond, w.Rouse)
				}
				began := time.Now()
				if !m.s.Await(ctx, &w, ready, nil, nil) || time.Since(began) > awaitPoll {
					t.Errorf("%s: what was there at once was seen after %v, and %d looks", mode.name, time.Since(began), looks)
				}
				looks, there, began = 0, false, time.Now()
				if changes == 1 && (!w.Sleep(ctx, ready, nil, nil) || time.Since(began) > 0) {
					t.Errorf("%s: a sleep ended after %v, and %d looks", mode.name, time.Since(began), looks)
				}
			})
		}
	}
}

// TestWaitEndsWithAllAnswers checks that a wait lasts until Close has answered everything,
// at its very end.
func TestWaitEndsWithAllAnswers(t *testing.T) {
	for _, mode := range modes[:2] {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, mode.cfg, 1)
			m.s.Start(false)
			var w Waiter
			w.Init()
			var answered, ended atomic.Bool
			go func() {
				if !m.s.Await(t.Context(), &w, answered.Load, nil, nil) {
					t.Errorf("%s: a wait ended before the answer that Close gave", mode.name)
				}
				ended.Store(true)
			}()
			synctest.Wait()
			m.s.Close(func() {}, func() error { time.Sleep(time.Millisecond); close(m.down); return nil }, func() {
				time.Sleep(time.Second)
				answered.Store(true)
			})
			synctest.Wait()
			if !ended.Load() {
				t.Errorf("%s: a wait goes on after Close", mode.name)
			}
		})
	}
}

// TestSleep checks that a sleep ends when ready returns true after a Rouse, and not before;
// or with one token.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Waiter
		w.Init()
		var yes atomic.Bool
		time.AfterFunc(time.Millisecond, w.Rouse) // for nothing
		time.AfterFunc(time.Second, func() { yes.Store(true); w.Rouse() })
		began := time.Now()
		if !w.Sleep(t.Context(), func() bool { return yes.Load() }, nil, nil) || time.Since(began) != time.Second {
			t.Errorf("what was there after a second ended a sleep after %v", time.Since(began))
		}
		if w.Asleep() {
			t.Error("asleep after the sleep")
		}
		for n := range 2 {
			token := make(chan struct{}, 1)
			ends := [2]chan struct{}{}
			ends[n] = token
			time.AfterFunc(time.Second, func() { token <- struct{}{} })
			began := time.Now()
			if w.Sleep(t.Context(), func() bool { return false }, ends[0], ends[1]) || time.Since(began) != time.Second {
				t.Errorf("a token of the first second ended a sleep after %v", time.Since(began))
			}
		}
	})
}

// TestSleepEndsWithItsContext checks that a sleep ends with its context, and not before.
func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Waiter
		w.Init()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if w.Sleep(ctx, func() bool { return false }, nil, nil) || time.Since(began) != time.Second || w.Asleep() {
			t.Errorf("it ended after %v; asleep: %v", time.Since(began), w.Asleep())
		}
	})
}
