package sched

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestLending: who waits receives meanwhile, until it stays away, there are several, or
// the scheduler is closed.
func TestLending(t *testing.T) {
	lent := func(t *testing.T, does func(m *model, wait func(d time.Duration))) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{Lend: true}, 1)
			m.s.Start(false)
			defer m.close()
			stop := make(chan struct{})
			defer close(stop)
			go func() { // something comes every 100 microseconds
				for {
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Microsecond):
						m.in <- m.items[0]
					}
				}
			}()
			does(m, func(d time.Duration) {
				var w Waiter
				w.Init()
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				m.s.Await(ctx, &w, func() bool { return false }, nil, nil)
			})
		})
	}
	t.Run("lent", func(t *testing.T) {
		lent(t, func(m *model, wait func(time.Duration)) {
			wait(10 * time.Millisecond)
			if m.s.loans.Load() == 0 {
				t.Error("nobody received but the scheduler")
			}
			served := m.items[0].doneSoFar()
			time.Sleep(idleTurn + 2*time.Millisecond)
			if m.items[0].doneSoFar() < served+10 {
				t.Error("nobody receives after the helper left")
			}
		})
	})
	t.Run("stays away", func(t *testing.T) {
		lent(t, func(m *model, wait func(time.Duration)) {
			for range 10 * mostLuck {
				wait(50 * time.Microsecond)
				time.Sleep(2 * idleTurn)
			}
			if m.s.pauses.Load() == 0 {
				t.Error("a helper that is always away is still wanted")
			}
			was := m.s.loans.Load()
			for range pause / 2 {
				wait(time.Microsecond)
			}
			if m.s.loans.Load() > was+1 {
				t.Error("helped in a pause")
			}
			for range 2 * pause {
				wait(200 * time.Microsecond)
			}
			if m.s.loans.Load() <= was+1 {
				t.Error("the pause does not end")
			}
		})
	})
	t.Run("several", func(t *testing.T) {
		lent(t, func(m *model, wait func(time.Duration)) {
			over := make(chan struct{})
			for range 2 {
				go func() {
					wait(20 * time.Millisecond)
					over <- struct{}{}
				}()
			}
			time.Sleep(5 * time.Millisecond)
			was := m.s.loans.Load()
			time.Sleep(10 * time.Millisecond)
			if n := m.s.loans.Load() - was; n > 2 {
				t.Errorf("%d loans to two who wait", n)
			}
			<-over
			<-over
		})
	})
	t.Run("bounded", func(t *testing.T) {
		lent(t, func(m *model, wait func(time.Duration)) {
			began := time.Now()
			wait(5 * time.Millisecond)
			if took := time.Since(began); took < 5*time.Millisecond || took > 6*time.Millisecond {
				t.Errorf("the end of 5ms was noticed after %v", took)
			}
		})
	})
	t.Run("not lent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{}, 1)
			m.s.Start(false)
			defer m.close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			time.AfterFunc(time.Millisecond, func() { m.in <- m.items[0] })
			var w Waiter
			w.Init()
			m.s.Await(ctx, &w, func() bool { return false }, nil, nil)
			if m.s.asked.Load() || m.s.loans.Load() > 0 {
				t.Error("the turn was asked for")
			}
		})
	})
}
