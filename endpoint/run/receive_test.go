package run

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLooksAndWaits checks that with Spin receive never waits for datagrams, and looks more
// than once if it may; and that without it receive waits as long as it may.
func TestLooksAndWaits(t *testing.T) {
	for _, c := range []struct {
		spin  bool
		wait  time.Duration
		looks int // that find nothing
		found int
		waits []time.Duration
	}{
		{false, 0, 1, 0, []time.Duration{0}},
		{false, 5, 0, 1, []time.Duration{5}},
		{false, 5, 1, 0, []time.Duration{5}},
		{false, Forever, 0, 1, []time.Duration{Forever}},
		{true, 0, 9, 0, []time.Duration{0}},
		{true, 5, 0, 1, []time.Duration{0}},
		{true, 5, 3, 1, []time.Duration{0, 0, 0, 0}},
		{true, Forever, 3, 1, []time.Duration{0, 0, 0, 0}},
	} {
		m := newScript(t, Config{Spin: c.spin}, 1)
		var waits []time.Duration
		m.receive = func(wait time.Duration) (int, error) {
			if waits = append(waits, wait); len(waits) == c.looks+1 {
				return 1, nil
			}
			return 0, nil
		}
		applied := 0
		m.apply = func(n int) (bool, error) {
			if applied++; n != 1 {
				t.Errorf("a batch of %d is applied", n)
			}
			return false, nil
		}
		if n, err := m.s.receive(c.wait); n != c.found || err != nil || applied != n || !slices.Equal(waits, c.waits) {
			t.Errorf("spin %v, wait %v, nothing for %d looks: %d, %v; applied %d times; it waited %v", c.spin, c.wait, c.looks, n, err, applied, waits)
		}
		m.close()
	}
}

// TestSpin checks that with Spin Progress looks for datagrams, and ends after the time that
// was given.
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

// TestSpinYields checks that other goroutines get the processor after some looks in vain, if
// there is only one.
func TestSpinYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m := newScript(t, Config{Spin: true}, 1)
	m.receive = func(time.Duration) (int, error) { return 0, nil }
	for range 100 { // for the goroutine that looks may be interrupted
		var other atomic.Bool
		go other.Store(true)
		for spun := 0; !other.Load(); spun++ {
			if m.s.receive(Forever); spun == 10 {
				t.Fatalf("no other goroutine got the processor in %d looks", spun*spins)
			}
		}
	}
	m.close()
}

// TestReceiveErrors checks that a batch is not applied if Receive also returned an error, nor
// after the scheduler broke; and that the last batch is answered.
func TestReceiveErrors(t *testing.T) {
	unplugged := errors.New("unplugged")
	m := newScript(t, Config{}, 1)
	applied := 0
	m.apply = func(int) (bool, error) { applied++; m.replyPending = true; return true, unplugged }
	m.receive = func(time.Duration) (int, error) { return 1, unplugged }
	if n, err := m.s.receive(0); n != 1 || err != unplugged || applied > 0 {
		t.Errorf("%d, %v, and applied %d times", n, err, applied)
	}
	m.receive = func(time.Duration) (int, error) { return 1, nil }
	if n, err := m.s.receive(0); n != 1 || err != unplugged || applied != 1 || m.replyPending {
		t.Errorf("%d, %v, and applied %d times; a reply is pending: %v", n, err, applied, m.replyPending)
	}
	looks := 0
	m.receive = func(time.Duration) (int, error) {
		if looks++; looks > 1 {
			return 0, nil
		}
		return 0, unplugged
	}
	m.s.cfg.Spin = true
	if n, err := m.s.receive(5); n != 0 || err != unplugged {
		t.Errorf("%d, %v at the first of %d looks", n, err, looks)
	}
	m.s.cfg.Spin = false
	m.receive = func(time.Duration) (int, error) { return 1, nil }
	m.s.Break(net.ErrClosed) // which is a reason before Close
	if n, err := m.s.receive(0); n != 1 || err != net.ErrClosed || applied != 1 {
		t.Errorf("%d, %v, and applied %d times", n, err, applied)
	}
	m.close()
}

// TestNoLookAfterTheEnd checks that the receive goroutine stops when the batch at hand
// breaks the scheduler, and applies a batch at once when no caller requested the lock.
func TestNoLookAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{CallerPolling: true}, 1)
		began, looks := time.Now(), 0
		m.receive = func(wait time.Duration) (int, error) {
			if looks++; wait != Forever {
				t.Errorf("it waits %v for datagrams", wait)
			}
			return m.model.Receive(wait)
		}
		m.apply = func(int) (bool, error) { <-m.in; m.replyPending = true; return true, nil }
		m.reply = func() {
			if m.replyPending = false; looks == 3 {
				m.s.Break(errors.New("a wire was cut"))
			}
			if time.Since(began) > 0 {
				t.Errorf("a batch is answered after %v", time.Since(began))
			}
		}
		m.s.Start(false)
		for range 3 {
			m.in <- m.items[0]
			synctest.Wait()
		}
		m.in <- m.items[0]
		synctest.Wait()
		if looks != 3 {
			t.Errorf("%d looks at 3 datagrams before the end", looks)
		}
		m.receive = nil
		m.close()
	})
}
