package sched

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
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
			for range 10 * patience.MostLuck {
				wait(50 * time.Microsecond)
				time.Sleep(2 * idleTurn)
			}
			if m.s.worth.Pauses.Load() == 0 {
				t.Error("a helper that is always away is still wanted")
			}
			was := m.s.loans.Load()
			for range patience.Pause / 2 {
				wait(time.Microsecond)
			}
			if m.s.loans.Load() > was+1 {
				t.Error("helped in a pause")
			}
			for range 2 * patience.Pause {
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
	t.Run("several, roused", func(t *testing.T) {
		lent(t, func(m *model, wait func(time.Duration)) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			var w [2]Waiter
			over := make(chan struct{})
			for i := range w {
				w[i].Init()
				go func() {
					m.s.Await(ctx, &w[i], func() bool { return false }, nil, nil)
					over <- struct{}{}
				}()
				time.Sleep(300 * time.Microsecond)
			}
			if m.s.loans.Load() != 1 || m.s.asked.Load() {
				t.Errorf("%d loans; the turn is not back although two wait: %v", m.s.loans.Load(), m.s.asked.Load())
			}
			for range 50 {
				time.Sleep(100 * time.Microsecond)
				for i := range w {
					w[i].Rouse()
				}
			}
			if n := m.s.loans.Load(); n != 1 || m.s.asked.Load() {
				t.Errorf("%d loans to two who wait; the turn is asked for: %v", n, m.s.asked.Load())
			}
			<-over
			<-over
		})
	})
	t.Run("for others", func(t *testing.T) {
		lent(t, func(m *model, wait func(time.Duration)) {
			over := make(chan struct{})
			go func() { wait(4 * lendMost); close(over) }()
			time.Sleep(lendMost - time.Millisecond)
			if m.s.loans.Load() != 1 || !m.s.asked.Load() {
				t.Errorf("%d loans before a helper has to give the turn back", m.s.loans.Load())
			}
			time.Sleep(2 * time.Millisecond)
			if m.s.loans.Load() != 1 || m.s.asked.Load() {
				t.Error("a helper that takes datagrams for others keeps the turn")
			}
			<-over
		})
	})
	t.Run("luck", func(t *testing.T) {
		lent(t, func(m *model, wait func(time.Duration)) {
			want := patience.MostLuck / 2
			for n, absence := range []time.Duration{0, 10, 10, 10, 10, 10, 10, 240, 260, 2000, 10, 260, 390, 260} {
				if n > 0 { // the helper was never here
					time.Sleep(absence * time.Microsecond)
					if absence*time.Microsecond < longAbsence {
						want = min(want+1, patience.MostLuck)
					} else {
						want -= 2
					}
				}
				wait(350 * time.Microsecond)
				synctest.Wait()
				if want < 0 {
					want = patience.MostLuck / 2
				}
				if !m.s.receiving.tryTake() {
					t.Fatalf("helper %d, after %v: it left, and the turn is taken", n, absence*time.Microsecond)
				}
				if m.s.worth.Luck != want {
					t.Errorf("helper %d, after %v: luck is %d, want %d", n, absence*time.Microsecond, m.s.worth.Luck, want)
				}
				m.s.receiving.give()
			}
			if n := m.s.worth.Pauses.Load(); n != patience.Pause {
				t.Errorf("a helper that was away too often pauses %d times", n)
			}
			was := m.s.loans.Load()
			for range patience.Pause / 4 {
				if wait(350 * time.Microsecond); m.s.loans.Load() != was || m.s.asked.Load() {
					t.Fatalf("%d loans in a pause; the turn is not back: %v", m.s.loans.Load()-was, m.s.asked.Load())
				}
			}
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
	t.Run("in vain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{Lend: true}, 1)
			m.s.Start(false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			over := make(chan struct{})
			go func() {
				var w Waiter
				w.Init()
				m.s.Await(ctx, &w, func() bool { return false }, nil, nil)
				close(over)
			}()
			synctest.Wait()
			m.in <- m.items[0]
			time.Sleep(atATime / 2)
			if m.s.loans.Load() != 1 || !m.s.asked.Load() {
				t.Errorf("%d loans when something came", m.s.loans.Load())
			}
			time.Sleep(atATime/2 + atATime/20)
			synctest.Wait()
			if m.s.asked.Load() {
				t.Error("nothing came while there was help, and the turn is not back")
			}
			<-over
			m.close()
			// It may be judged twice: who lends looks at the moment when the helper leaves.
			if m.s.loans.Load() != 1 || m.s.worth.Luck > patience.MostLuck/2-2 {
				t.Errorf("%d loans, and one datagram; luck is %d", m.s.loans.Load(), m.s.worth.Luck)
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
