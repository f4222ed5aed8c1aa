package run

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestFirstReasonStays checks that the first reason is why a scheduler broke, that pollers
// get it, and the engine once; and that the end of the transport during Close is none.
func TestFirstReasonStays(t *testing.T) {
	m := newModel(t, Config{}, 1)
	if err := m.s.Err(); err != nil || m.s.IsOver() {
		t.Errorf("at first: %v", err)
	}
	first := errors.New("first")
	for _, err := range []error{first, errors.New("second"), net.ErrClosed} {
		m.s.Break(err)
		if got := m.s.Err(); got != first || !m.s.IsOver() {
			t.Errorf("after %v: %v", err, got)
		}
	}
	if n := m.broken.Load(); n != 1 {
		t.Errorf("Broken was called %d times", n)
	}
	if _, err := m.s.Progress(0); err != first {
		t.Errorf("Progress returns %v", err)
	}
	m.close()

	m = newModel(t, Config{}, 1)
	m.close()
	m.s.Break(errClosed)
	if err := m.s.Err(); err != nil {
		t.Errorf("the end of the transport after Close: %v", err)
	}
	m.s.Break(first)
	if err := m.s.Err(); err != first {
		t.Errorf("what else happened after Close: %v", err)
	}
}

// TestTransportEnds checks that a transport that ends by itself breaks the scheduler,
// whichever goroutine receives.
func TestTransportEnds(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{}, 1)
			m.ended = errors.New("unplugged")
			if own {
				m.s.Start(false)
			}
			close(m.down)
			if !own {
				if _, err := m.s.Progress(0); err != m.ended {
					t.Errorf("Progress returns %v", err)
				}
			}
			synctest.Wait()
			if err := m.s.Err(); err != m.ended || m.abandoned.Load() == 0 {
				t.Errorf("own goroutines %v: %v, and pending work was answered %d times", own, err, m.abandoned.Load())
			}
			m.s.Close(func() {}, func() error { return nil }, func() {})
		})
	}
}

// TestErrorOfApply checks that an error of Apply breaks the scheduler, whichever goroutine
// receives.
func TestErrorOfApply(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			unplugged := errors.New("unplugged")
			m := newScript(t, Config{}, 1)
			m.apply = func(int) (bool, error) { <-m.in; return false, unplugged }
			if own {
				m.s.Start(false)
			}
			m.in <- m.items[0]
			if !own {
				if n, err := m.s.Progress(time.Second); n != 1 || err != unplugged {
					t.Errorf("Progress returns %d, %v", n, err)
				}
			}
			synctest.Wait()
			if err := m.s.Err(); err != unplugged || m.abandoned.Load() == 0 {
				t.Errorf("own goroutines %v: %v, and pending work was answered %d times", own, err, m.abandoned.Load())
			}
			m.close()
		})
	}
}

// TestBrokenByOthers checks that Break of any goroutine has pending work answered by the
// send goroutine, and that the scheduler is not over until Close.
func TestBrokenByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		m.s.Start(false)
		synctest.Wait()
		m.s.Break(errors.New("a wire was cut"))
		synctest.Wait()
		if m.abandoned.Load() != 1 || m.s.IsOver() {
			t.Errorf("pending work was answered %d times; over: %v", m.abandoned.Load(), m.s.IsOver())
		}
		m.close()
		if !m.s.IsOver() {
			t.Error("not over after Close")
		}
	})
}

// TestPanicBreaks checks that a panic in a call of the engine reaches the caller on whose
// goroutine it is. If that recovers it, what is half done does not go on, the locks are free,
// and Close ends all (attack A8, SECURITY.md).
func TestPanicBreaks(t *testing.T) {
	calls := []struct {
		name   string
		set    func(m *script, panics func())
		breaks bool
	}{
		{"Apply", func(m *script, panics func()) {
			m.apply = func(n int) (bool, error) { panics(); return m.model.Apply(n) }
		}, true},
		{"Reply", func(m *script, panics func()) { m.reply = panics }, true},
		{"Serve", func(m *script, panics func()) { m.serve = func(*item) bool { panics(); return true } }, true},
		{"Flush", func(m *script, panics func()) { m.flush = panics }, true},
		{"Expire", func(m *script, panics func()) { m.expire = func(*item) { panics() } }, true},
		{"Deliver", func(m *script, panics func()) { m.deliver = panics }, false},
	}
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newScript(t, Config{}, 2)
				left, after := 0, 0
				c.set(m, func() {
					if left++; left == 1 {
						panic("sprung")
					}
				})
				m.s.AtBatchEnd(func() { after++ })
				m.need(m.items[1])
				m.arm(m.items[0], time.Millisecond)
				m.in <- m.items[0]
				time.Sleep(time.Second)
				m.s.Kick()
				if p := caught(func() { m.s.Progress(0) }); p != "sprung" {
					t.Errorf("Progress panics with %v", p)
				}
				if err := m.s.Err(); c.breaks != (err == errPanic) || c.breaks != (m.broken.Load() == 1) {
					t.Errorf("%v, and Broken was called %d times", err, m.broken.Load())
				}
				if _, err := m.s.Progress(0); c.breaks != (err == errPanic) || c.breaks != (m.abandoned.Load() == 1) {
					t.Errorf("Progress then returns %v, and pending work was answered %d times", err, m.abandoned.Load())
				}
				if c.breaks && left != 1 {
					t.Errorf("called %d times", left)
				}
				if after != 1 || m.s.IsBatching() {
					t.Errorf("what waits for the end of the batch was called %d times", after)
				}
				m.close()
			})
		})
	}
}

// TestPanicOnOtherCallers checks the same of the goroutines of the program that run the engine
// of a scheduler with goroutines of its own (attack A8, SECURITY.md).
func TestPanicOnOtherCallers(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(m *script)
	}{
		{"Work", func(m *script) {
			m.serve = func(*item) bool { panic("sprung") }
			m.queue(m.items[0], true)
		}},
		{"Await", func(m *script) {
			var last atomic.Bool
			m.apply = func(n int) (bool, error) {
				if last.Load() {
					panic("sprung")
				}
				return m.model.Apply(n)
			}
			time.AfterFunc(time.Second, func() { m.in <- m.items[0] }) // then the receive lock is handed over
			time.AfterFunc(time.Second+idleLimit/2, func() {
				last.Store(true)
				m.in <- m.items[0]
			})
			var w Waiter
			w.Init()
			m.s.Await(context.Background(), &w, func() bool { return false }, nil, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newScript(t, Config{CallerPolling: true}, 1)
				m.s.Start(false)
				synctest.Wait()
				if p := caught(func() { c.run(m) }); p != "sprung" {
					t.Errorf("it panics with %v", p)
				}
				synctest.Wait()
				if m.s.Err() != errPanic || m.abandoned.Load() == 0 {
					t.Errorf("%v, and pending work was answered %d times", m.s.Err(), m.abandoned.Load())
				}
				m.close()
			})
		})
	}
}

// TestPanicInClose checks that a panic in a call of Close reaches its caller, and that another
// Close, which the program may have deferred, returns (attack A8, SECURITY.md).
func TestPanicInClose(t *testing.T) {
	for panics := range 3 {
		m := newScript(t, Config{}, 1)
		call := func(n int) {
			if n == panics {
				panic("sprung")
			}
		}
		if p := caught(func() {
			defer m.s.Close(func() { call(0) }, func() error { call(1); return nil }, func() { call(2) })
			m.s.Close(func() { call(0) }, func() error { call(1); return nil }, func() { call(2) })
		}); p != "sprung" {
			t.Errorf("call %d: it panics with %v", panics, p)
		}
	}
}

// caught returns what a function panics with.
func caught(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}
