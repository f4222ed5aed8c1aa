package sched

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneTokenEndsAWait: who may say that a wait is over says it once, whoever takes
// the token, and whatever the waiter does at that moment.
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
		case <-time.After(3 * atATime):
			t.Fatalf("datagrams come %v: the only token was sent, and the wait goes on", busy)
		}
		if w.Asleep() {
			t.Errorf("datagrams come %v: asleep after the wait", busy)
		}
	}
}

// TestSleep: it ends when ready says yes after a Rouse, and not before; or with one token.
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

// TestRousedAsItFallsAsleep: what changes behind the last look before sleep is seen.
func TestRousedAsItFallsAsleep(t *testing.T) {
	for _, mode := range modes[:3] {
		for behind := 1; behind <= 3; behind++ {
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
					if looks++; looks == behind {
						there = true
						w.Rouse()
					}
					return said
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if behind == 3 { // which there would not be
					time.AfterFunc(time.Millisecond, w.Rouse)
				}
				began := time.Now()
				if !m.s.Await(ctx, &w, ready, nil, nil) || time.Since(began) > atATime {
					t.Errorf("%s: what was there at once was seen after %v, and %d looks", mode.name, time.Since(began), looks)
				}
				looks, there, began = 0, false, time.Now()
				if behind == 1 && (!w.Sleep(ctx, ready, nil, nil) || time.Since(began) > 0) {
					t.Errorf("%s: a sleep ended after %v, and %d looks", mode.name, time.Since(began), looks)
				}
			})
		}
	}
}

// TestSpin: who never sleeps looks for datagrams, and gives up after a while if it was
// told to.
func TestSpin(t *testing.T) {
	m := newModel(t, Config{Spin: true}, 1)
	defer m.close()
	if n, err := m.s.Progress(time.Microsecond); n != 0 || err != nil {
		t.Errorf("found %d datagrams where none are, %v", n, err)
	}
	m.in <- m.items[0]
	if n, err := m.s.Progress(time.Microsecond); n != 1 || err != nil || m.items[0].doneSoFar() != 1 {
		t.Errorf("found %d datagrams, %v, and served %d", n, err, m.items[0].doneSoFar())
	}
}

// TestWaitEndsWithAllAnswers: what Close answers at its very end was waited for.
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
