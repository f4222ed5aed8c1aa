package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// withoutGoroutines has a test take the part of the caller that polls and of the receive
// goroutine: the scheduler has no goroutine that would.
func withoutGoroutines(t *testing.T, cfg Config, does func(m *script, u *until)) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, cfg, 1)
		m.s.own = true
		m.apply = func(int) (bool, error) { <-m.in; return false, nil }
		m.s.waiters.Store(1)
		time.Sleep(time.Second)
		does(m, &until{ready: func() bool { return false }})
		m.close()
	})
}

// TestPollAsCaller checks when a caller may poll, how long it does, whether that counts as
// paid, and whether the receive goroutine is to take the lock back at once.
func TestPollAsCaller(t *testing.T) {
	const beat = 100 * time.Microsecond
	comes := func(m *script) {
		m.receive = func(time.Duration) (int, error) {
			time.Sleep(beat)
			m.in <- m.items[0]
			return 1, nil
		}
	}
	half := patience.MaxScore / 2
	for _, c := range []struct {
		name   string
		off    bool // callers are not to poll
		begins func(m *script, u *until)
		polls  uint64
		took   time.Duration
		score  int
		back   int  // tokens for the receive goroutine
		asks   bool // for the lock
		free   bool // the next caller finds the lock free
	}{
		{name: "off", off: true, score: half},
		{name: "broken", begins: func(m *script, _ *until) { m.s.Break(errors.New("cut")) }, score: half},
		{name: "two wait", begins: func(m *script, _ *until) { m.s.waiters.Store(2) }, score: half, back: 1},
		{name: "pause", begins: func(m *script, _ *until) { m.s.policy.Pauses.Store(1) }, score: half, back: 1},
		{name: "lock is held", begins: func(m *script, _ *until) {
			m.s.receiveLock.lock()
			time.AfterFunc(time.Millisecond, m.s.receiveLock.unlock)
		}, score: half, asks: true},
		{name: "there already", begins: func(m *script, u *until) { u.ready = func() bool { return true } }, polls: 1, score: half, free: true},
		{name: "third batch", begins: func(m *script, u *until) {
			comes(m)
			looks := 0
			u.ready = func() bool { looks++; return looks > 3 }
		}, polls: 1, took: 3 * beat, score: half, free: true},
		{name: "in vain", polls: 1, took: awaitPoll, score: half - 2, back: 1},
		{name: "for others", begins: func(m *script, _ *until) { comes(m) }, polls: 1, took: pollLimit, score: half, back: 1},
		{name: "another waits", begins: func(m *script, _ *until) {
			comes(m)
			time.AfterFunc(2*beat+beat/2, func() { m.s.waiters.Store(2) })
		}, polls: 1, took: 3 * beat, score: half, back: 1},
		{name: "error", begins: func(m *script, _ *until) {
			comes(m)
			m.apply = func(int) (bool, error) { <-m.in; return false, errors.New("unplugged") }
		}, polls: 1, took: beat, score: half - 2, back: 1},
	} {
		withoutGoroutines(t, Config{CallerPolling: !c.off}, func(m *script, u *until) {
			if c.begins != nil {
				c.begins(m, u)
			}
			began := time.Now()
			m.s.pollAsCaller(u)
			took := time.Since(began)
			if m.s.polls.Load() != c.polls || took != c.took || m.s.policy.Score != c.score {
				t.Errorf("%s: %d polls, %v, score %d; want %d, %v, %d", c.name, m.s.polls.Load(), took, m.s.policy.Score, c.polls, c.took, c.score)
			}
			if len(m.s.returned) != c.back || m.s.requested.Load() != c.asks || (m.s.polled == m.Now()) != c.free || !c.free && m.s.polled != 0 {
				t.Errorf("%s: %d tokens, want %d; the lock is requested: %v; the caller polled until %v, and it is %v",
					c.name, len(m.s.returned), c.back, m.s.requested.Load(), m.s.polled, m.Now())
			}
			if m.s.policy.Pauses.Load() != 0 {
				t.Errorf("%s: %d pauses", c.name, m.s.policy.Pauses.Load())
			}
		})
	}
}

// TestCallersAbsence checks that an absence counts once, at the next poll, if the lock was
// free for it.
func TestCallersAbsence(t *testing.T) {
	withoutGoroutines(t, Config{CallerPolling: true}, func(m *script, u *until) {
		score := patience.MaxScore / 2
		soon := &until{ready: func() bool { return true }}
		for n, c := range []struct {
			u      *until
			judged int
		}{{soon, 0}, {soon, 1}, {u, 1 - 2}, {u, -2}, {soon, 0}, {soon, 1}} {
			m.s.pollAsCaller(c.u)
			if score += c.judged; m.s.policy.Score != score {
				t.Errorf("poll %d: score is %d, want %d", n, m.s.policy.Score, score)
			}
			time.Sleep(longAbsence / 2)
		}
	})
}

// TestPauses checks that pauses are counted one by one.
func TestPauses(t *testing.T) {
	withoutGoroutines(t, Config{CallerPolling: true}, func(m *script, u *until) {
		m.s.policy.Pauses.Store(3)
		for left := int32(2); left >= 0; left-- {
			if m.s.pollAsCaller(u); m.s.policy.Pauses.Load() != left || m.s.polls.Load() != 0 {
				t.Errorf("%d are left, want %d; %d polls", m.s.policy.Pauses.Load(), left, m.s.polls.Load())
			}
		}
	})
}

// TestHandOver checks when the receive goroutine has the lock back, and whether the
// handover counts as one that did not pay.
func TestHandOver(t *testing.T) {
	polls := func(m *script) {
		m.s.receiveLock.lock()
		m.s.polled = m.s.engine.Now()
		m.s.receiveLock.unlock()
	}
	const half = idleLimit / 2
	for _, c := range []struct {
		name  string
		after time.Duration // of half of idleLimit
		does  func(m *script)
		took  time.Duration
		score int
	}{
		{"no poll", 0, func(m *script) {}, idleLimit, -2},
		{"given back", half, func(m *script) { polls(m); patience.Leave(m.s.returned) }, half, 0},
		{"given back unused", half, func(m *script) { patience.Leave(m.s.returned) }, half, 0},
		{"polled once", half, func(m *script) {
			<-m.s.offered
			polls(m) // a caller that tried while handOver looked gets an offer, too
		}, half + idleLimit, -2},
		{"polls", half, func(m *script) {
			m.s.receiveLock.lock()
			time.AfterFunc(3*idleLimit, m.s.receiveLock.unlock)
		}, 4 * idleLimit, -2},
	} {
		withoutGoroutines(t, Config{CallerPolling: true}, func(m *script, _ *until) {
			m.s.receiveLock.lock()
			m.s.requested.Store(true)
			m.s.polled = 5
			for range 2 { // of earlier handovers
				patience.Leave(m.s.returned)
				patience.Leave(m.s.offered)
			}
			idle := time.NewTimer(time.Hour)
			time.AfterFunc(c.after, func() { c.does(m) })
			began := time.Now()
			m.s.handOver(idle)
			if took := time.Since(began); took != c.took || m.s.policy.Score != patience.MaxScore/2+c.score {
				t.Errorf("%s: it has the lock after %v, want %v; score is %+d, want %+d", c.name, took, c.took, m.s.policy.Score-patience.MaxScore/2, c.score)
			}
			if m.s.requested.Load() || m.s.polled != 0 || m.s.receiveLock.tryLock() || len(m.s.offered) != 1 {
				t.Errorf("%s: requested %v, polled until %v, offered %d times; or the lock is not held", c.name, m.s.requested.Load(), m.s.polled, len(m.s.offered))
			}
			m.s.receiveLock.unlock()
		})
	}
}

// TestCallerPolling checks that a caller of Await receives, until it stays away, there are
// several, or the scheduler is closed.
func TestCallerPolling(t *testing.T) {
	polled := func(t *testing.T, does func(m *model, wait func(d time.Duration))) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{CallerPolling: true}, 1)
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
	t.Run("polled", func(t *testing.T) {
		polled(t, func(m *model, wait func(time.Duration)) {
			wait(10 * time.Millisecond)
			if m.s.polls.Load() == 0 {
				t.Error("only the scheduler received")
			}
			served := m.items[0].doneSoFar()
			time.Sleep(idleLimit + 2*time.Millisecond)
			if m.items[0].doneSoFar() < served+10 {
				t.Error("no goroutine receives after the caller polled")
			}
		})
	})
	t.Run("stays away", func(t *testing.T) {
		polled(t, func(m *model, wait func(time.Duration)) {
			for range 10 * patience.MaxScore {
				wait(50 * time.Microsecond)
				time.Sleep(2 * idleLimit)
			}
			if m.s.policy.Pauses.Load() == 0 {
				t.Error("a caller that is always away may still poll")
			}
			was := m.s.polls.Load()
			for range patience.Pause / 2 {
				wait(time.Microsecond)
			}
			if m.s.polls.Load() > was+1 {
				t.Error("polled in a pause")
			}
			for range 2 * patience.Pause {
				wait(200 * time.Microsecond)
			}
			if m.s.polls.Load() <= was+1 {
				t.Error("the pause does not end")
			}
		})
	})
	t.Run("several", func(t *testing.T) {
		polled(t, func(m *model, wait func(time.Duration)) {
			over := make(chan struct{})
			for range 2 {
				go func() {
					wait(20 * time.Millisecond)
					over <- struct{}{}
				}()
			}
			time.Sleep(5 * time.Millisecond)
			was := m.s.polls.Load()
			time.Sleep(10 * time.Millisecond)
			if n := m.s.polls.Load() - was; n > 2 {
				t.Errorf("%d polls of two callers", n)
			}
			<-over
			<-over
		})
	})
	t.Run("several, roused", func(t *testing.T) {
		polled(t, func(m *model, wait func(time.Duration)) {
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
			if m.s.polls.Load() != 1 || m.s.requested.Load() {
				t.Errorf("%d polls; the lock is not back although two wait: %v", m.s.polls.Load(), m.s.requested.Load())
			}
			for range 50 {
				time.Sleep(100 * time.Microsecond)
				for i := range w {
					w[i].Rouse()
				}
			}
			if n := m.s.polls.Load(); n != 1 || m.s.requested.Load() {
				t.Errorf("%d polls of two callers; the lock is requested: %v", n, m.s.requested.Load())
			}
			<-over
			<-over
		})
	})
	t.Run("for others", func(t *testing.T) {
		polled(t, func(m *model, wait func(time.Duration)) {
			over := make(chan struct{})
			go func() { wait(4 * pollLimit); close(over) }()
			time.Sleep(pollLimit - time.Millisecond)
			if m.s.polls.Load() != 1 || !m.s.requested.Load() {
				t.Errorf("%d polls before a caller has to release the lock", m.s.polls.Load())
			}
			time.Sleep(2 * time.Millisecond)
			if m.s.polls.Load() != 1 || m.s.requested.Load() {
				t.Error("a caller that takes datagrams for others keeps the lock")
			}
			<-over
		})
	})
	t.Run("absences", func(t *testing.T) {
		polled(t, func(m *model, wait func(time.Duration)) {
			want := patience.MaxScore / 2
			for n, absence := range []time.Duration{0, 10, 10, 10, 10, 10, 10, 240, 260, 2000, 10, 260, 390, 260} {
				if n > 0 { // the caller never polled before
					time.Sleep(absence * time.Microsecond)
					if absence*time.Microsecond < longAbsence {
						want = min(want+1, patience.MaxScore)
					} else {
						want -= 2
					}
				}
				wait(350 * time.Microsecond)
				synctest.Wait()
				if want < 0 {
					want = patience.MaxScore / 2
				}
				if !m.s.receiveLock.tryLock() {
					t.Fatalf("poll %d, after %v: it is over, and the lock is held", n, absence*time.Microsecond)
				}
				if m.s.policy.Score != want {
					t.Errorf("poll %d, after %v: score is %d, want %d", n, absence*time.Microsecond, m.s.policy.Score, want)
				}
				m.s.receiveLock.unlock()
			}
			if n := m.s.policy.Pauses.Load(); n != patience.Pause {
				t.Errorf("a caller that was away too often pauses %d times", n)
			}
			was := m.s.polls.Load()
			for range patience.Pause / 4 {
				if wait(350 * time.Microsecond); m.s.polls.Load() != was || m.s.requested.Load() {
					t.Fatalf("%d polls in a pause; the lock is not back: %v", m.s.polls.Load()-was, m.s.requested.Load())
				}
			}
		})
	})
	t.Run("bounded", func(t *testing.T) {
		polled(t, func(m *model, wait func(time.Duration)) {
			began := time.Now()
			wait(5 * time.Millisecond)
			if took := time.Since(began); took < 5*time.Millisecond || took > 6*time.Millisecond {
				t.Errorf("the end of 5ms was noticed after %v", took)
			}
		})
	})
	t.Run("in vain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{CallerPolling: true}, 1)
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
			time.Sleep(awaitPoll / 2)
			if m.s.polls.Load() != 1 || !m.s.requested.Load() {
				t.Errorf("%d polls when something came", m.s.polls.Load())
			}
			time.Sleep(awaitPoll/2 + awaitPoll/20)
			synctest.Wait()
			if m.s.requested.Load() {
				t.Error("nothing came during the poll, and the lock is not back")
			}
			<-over
			m.close()
			// It may count twice: the receive goroutine looks at the moment when the poll ends.
			if m.s.polls.Load() != 1 || m.s.policy.Score > patience.MaxScore/2-2 {
				t.Errorf("%d polls, and one datagram; score is %d", m.s.polls.Load(), m.s.policy.Score)
			}
		})
	})
	t.Run("off", func(t *testing.T) {
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
			if m.s.requested.Load() || m.s.polls.Load() > 0 {
				t.Error("the lock was requested")
			}
		})
	})
}
