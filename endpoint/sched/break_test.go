package sched

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestFirstReasonStays: why a scheduler broke is what broke it first, which who drives
// it hears, and the engine once; and that its transport is closed, while it is, is no reason.
func TestFirstReasonStays(t *testing.T) {
	m := newModel(t, Config{}, 1)
	if err := m.s.Err(); err != nil || m.s.Over() {
		t.Errorf("at first: %v", err)
	}
	first := errors.New("first")
	for _, err := range []error{first, errors.New("second"), net.ErrClosed} {
		m.s.Break(err)
		if got := m.s.Err(); got != first || !m.s.Over() {
			t.Errorf("after %v: %v", err, got)
		}
	}
	if n := m.broken.Load(); n != 1 {
		t.Errorf("the engine was told %d times", n)
	}
	if _, err := m.s.Progress(0); err != first {
		t.Errorf("who drives is told %v", err)
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

// TestTransportEnds: a transport that ends by itself breaks the scheduler, whoever
// receives.
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
					t.Errorf("who drives is told %v", err)
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

// TestAwaitLooksAgain: whenever ready says yes, be it at the last look before sleep, the
// wait is over, and nobody is asleep.
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

// TestDisarmedIsForgotten: what is closed is not kept until its deadline.
func TestDisarmedIsForgotten(t *testing.T) {
	m := newModel(t, Config{}, 3)
	for n, i := range m.items {
		m.s.Arm(&i.entry, 1, ack.Instant(time.Hour))
		if n != 1 {
			defer m.s.Disarm(&i.entry)
		}
	}
	m.s.Disarm(&m.items[1].entry)
	m.s.Disarm(&m.items[1].entry)
	if n := len(m.s.alarm.items); n != 2 {
		t.Errorf("%d items are listed, want 2", n)
	}
}
