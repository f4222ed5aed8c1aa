package run

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressEnds checks that Progress ends with a datagram, when something else is due,
// when Close begins, or after the time that was given, and at no other moment.
func TestProgressEnds(t *testing.T) {
	const ms = time.Millisecond
	soon := func(does func(m *script)) func(m *script) {
		return func(m *script) { time.AfterFunc(45*ms, func() { does(m) }) }
	}
	come := soon(func(m *script) { m.in <- m.items[0] })
	ends := soon(func(m *script) { m.close() })
	deadline := func(in time.Duration) func(m *script) {
		return func(m *script) { m.arm(m.items[0], in) }
	}
	expired := func(m *script) bool { return m.items[0].expired == 1 && m.items[0].late == 0 }
	for _, c := range []struct {
		name   string
		wait   time.Duration
		begins func(m *script)
		after  time.Duration
		n      int
		err    error
		did    func(m *script) bool
	}{
		{name: "nothing", wait: 50 * ms, after: 50 * ms},
		{name: "less than a look", wait: progressPoll * 3 / 4, after: progressPoll * 3 / 4},
		{name: "no wait"},
		{name: "datagram", wait: time.Second, begins: come, after: 45 * ms, n: 1},
		{name: "datagram", wait: Forever, begins: come, after: 45 * ms, n: 1},
		{name: "deadline", wait: time.Second, begins: deadline(45 * ms), after: 45 * ms, did: expired},
		{name: "deadline", wait: Forever, begins: deadline(45 * ms), after: 45 * ms, did: expired},
		{name: "later deadline", wait: 5 * ms, begins: deadline(time.Hour), after: 5 * ms},
		{name: "deadline that passed", wait: time.Second, begins: deadline(0), did: expired},
		{name: "earlier deadline that passed", wait: time.Second, begins: func(m *script) {
			m.arm(m.items[0], 0)
			time.Sleep(ms)
		}, did: func(m *script) bool { return m.items[0].expired == 1 }},
		{name: "work", wait: time.Second, begins: func(m *script) { m.need(m.items[0]) },
			did: func(m *script) bool { return m.items[0].done == 1 }},
		{name: "answer", wait: time.Second, begins: func(m *script) {
			m.answers.Add(1)
			m.s.Kick()
		}, did: func(m *script) bool { return m.delivered.Load() == 1 }},
		{name: "close", wait: time.Second, begins: ends, after: 3 * progressPoll, err: errClosed},
		{name: "close", wait: Forever, begins: ends, after: 3 * progressPoll, err: errClosed},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 1)
			time.Sleep(time.Second)
			if c.begins != nil {
				c.begins(m)
			}
			began := time.Now()
			n, err := m.s.Progress(c.wait)
			if took := time.Since(began); n != c.n || err != c.err || took != c.after {
				t.Errorf("%s, wait %v: %d, %v after %v, want %d, %v after %v", c.name, c.wait, n, err, took, c.n, c.err, c.after)
			}
			if c.did != nil && !c.did(m) {
				t.Errorf("%s, wait %v: it did not do what was due", c.name, c.wait)
			}
			if m.s.Err() != nil || m.abandoned.Load() > 0 {
				t.Errorf("%s, wait %v: the scheduler broke: %v", c.name, c.wait, m.s.Err())
			}
			if synctest.Wait(); c.err == nil {
				m.close()
			}
		})
	}
}

// TestProgressLeavesTheRest checks that Progress only receives if the scheduler has
// goroutines of its own.
func TestProgressLeavesTheRest(t *testing.T) {
	for _, wait := range []time.Duration{30 * time.Millisecond, Forever} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 1)
			m.s.own = true // without the send goroutine, which would do it
			m.need(m.items[0])
			m.s.Kick()
			m.arm(m.items[0], 5*time.Millisecond)
			want := 0
			if wait == Forever {
				want = 1
				time.AfterFunc(30*time.Millisecond, func() { m.in <- m.items[0] })
				m.apply = func(int) (bool, error) { <-m.in; return false, nil }
				m.s.pending.Store(false) // or the batch would serve it
			}
			began := time.Now()
			n, err := m.s.Progress(wait)
			if took := time.Since(began); n != want || err != nil || took != 30*time.Millisecond {
				t.Errorf("%d, %v after %v", n, err, took)
			}
			if i := m.items[0]; i.expired > 0 || i.done > 0 || len(m.s.wake) == 0 {
				t.Errorf("expired %d times, served %d, and tokens left: %d", i.expired, i.done, len(m.s.wake))
			}
			m.close()
		})
	}
}

// TestProgressWaitsForReceiveLock checks that Progress waits for the receive lock as long as
// it may, and then no longer for datagrams.
func TestProgressWaitsForReceiveLock(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		wait  time.Duration
		free  time.Duration // when the lock is; 0: never
		came  bool
		ends  time.Duration // when Close begins; 0: never
		after time.Duration
		n     int
		err   error
	}{
		{name: "no wait"},
		{name: "no wait, closed", ends: ms, err: errClosed},
		{name: "in vain", wait: 5 * ms, after: 5 * ms},
		{name: "nothing came", wait: time.Second, free: 3 * ms, after: 3 * ms},
		{name: "nothing came", wait: Forever, free: 45 * ms, after: 45 * ms},
		{name: "something came", wait: Forever, free: 45 * ms, came: true, after: 45 * ms, n: 1},
		{name: "closed", wait: Forever, ends: 45 * ms, after: 45 * ms, err: errClosed},
		{name: "closed", wait: time.Second, ends: 45 * ms, after: 45 * ms, err: errClosed},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 1)
			m.s.receiveLock.lock()
			if c.came {
				m.in <- m.items[0]
			}
			if c.ends > 0 {
				time.AfterFunc(c.ends, m.close)
			}
			if c.free > 0 {
				time.AfterFunc(c.free, m.s.receiveLock.unlock)
			}
			if c.wait == 0 {
				time.Sleep(2 * c.ends)
			}
			began := time.Now()
			n, err := m.s.Progress(c.wait)
			if took := time.Since(began); n != c.n || err != c.err || took != c.after {
				t.Errorf("%s, wait %v: %d, %v after %v, want %d, %v after %v", c.name, c.wait, n, err, took, c.n, c.err, c.after)
			}
			if c.free == 0 {
				m.s.receiveLock.unlock()
			}
			if synctest.Wait(); c.ends == 0 {
				m.close()
			}
		})
	}
}

// TestOversleepingTransport checks that a transport that waits longer than it may does not
// make a wait one without end.
func TestOversleepingTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		var waits []time.Duration
		m.receive = func(wait time.Duration) (int, error) {
			waits = append(waits, wait)
			time.Sleep(wait * 3 / 2)
			return 0, nil
		}
		m.s.Progress(progressPoll * 5 / 4)
		if want := []time.Duration{progressPoll, 0}; !slices.Equal(waits, want) {
			t.Errorf("it waits %v for datagrams, want %v", waits, want)
		}
		m.close()
	})
}

// TestProgressAfterTheEnd checks that Progress returns why nothing is received any more, also
// between two looks, and that the begin of Close is no reason to break.
func TestProgressAfterTheEnd(t *testing.T) {
	unplugged := errors.New("unplugged")
	for _, wait := range []time.Duration{0, time.Second, Forever} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 1)
			looks := 0
			m.receive = func(wait time.Duration) (int, error) {
				if looks++; looks == 2 || wait == 0 {
					return 0, unplugged
				}
				time.Sleep(wait)
				return 0, nil
			}
			if n, err := m.s.Progress(wait); n != 0 || err != unplugged || m.s.Err() != unplugged || m.abandoned.Load() != 1 {
				t.Errorf("wait %v: %d, %v; the scheduler broke: %v, and abandoned %d times", wait, n, err, m.s.Err(), m.abandoned.Load())
			}
			was := looks
			if n, err := m.s.Progress(wait); n != 0 || err != unplugged || looks != was {
				t.Errorf("wait %v: %d, %v, and %d looks more", wait, n, err, looks-was)
			}
			m.close()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		ended := errors.New("ended") // which is not net.ErrClosed
		m.s.cfg.ErrClosed = ended
		time.AfterFunc(time.Millisecond, m.close)
		if _, err := m.s.Progress(Forever); err != ended || m.s.Err() != nil {
			t.Errorf("%v, and the scheduler broke: %v", err, m.s.Err())
		}
		synctest.Wait()
	})
}
