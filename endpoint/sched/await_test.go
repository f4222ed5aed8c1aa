package sched

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitEndsAtOnce: a wait that is over before it begins does not drive first.
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
			if m.s.waiters.Load() != 0 || !m.s.receiving.tryTake() {
				t.Fatalf("%d wait still, or drive", m.s.waiters.Load())
			}
			m.s.receiving.give()
		})
	}
}

// TestAwaitLooksAfterEachBatch: at what a batch brings, and at what ends the wait, at
// once, although datagrams keep coming, and nobody rouses who is not asleep.
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
					if m.s.loans.Load() > 0 == mode.own && w.Asleep() {
						t.Errorf("%s: who drives is asleep", mode.name)
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

// TestAwaitOfABrokenScheduler: nobody drives it, and what is pending is answered.
func TestAwaitOfABrokenScheduler(t *testing.T) {
	for _, answers := range []bool{false, true} {
		m := newScript(t, Config{}, 1)
		m.s.Break(errors.New("a wire was cut"))
		m.receive = func(time.Duration) (int, error) {
			t.Fatal("somebody drives it")
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

// TestDoneDoesNotHelp: who is roused by what it waited for, or told that the wait is
// over, asks for no turn any more.
func TestDoneDoesNotHelp(t *testing.T) {
	for _, token := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{Lend: true}, 1)
			m.s.Start(false)
			m.s.worth.Pauses.Store(10)
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
				t.Errorf("it says %v", said)
			}
			if left := m.s.worth.Pauses.Load(); left != 9 {
				t.Errorf("%d waits are left without help, want 9", left)
			}
			m.close()
		})
	}
}

// TestSleepEndsWithItsContext, and not before.
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
