package run

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestDeadlines checks that each deadline is noticed when it passes and not before,
// however often it was moved, and none that was taken back.
func TestDeadlines(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{}, 50)
			stop := make(chan struct{})
			pollers := m.begin(mode{own: own}, stop)
			for range 2000 {
				i := m.items[r.IntN(len(m.items))]
				switch r.IntN(5) {
				case 0:
					i.mu.Lock()
					i.deadline = Never
					m.s.Disarm(&i.entry)
					i.mu.Unlock()
				case 1:
					i.mu.Lock()
					i.deadline = Never
					m.s.Arm(&i.entry, m.Now(), Never)
					i.mu.Unlock()
				default:
					m.arm(i, time.Duration(r.IntN(2000))*time.Microsecond)
				}
				time.Sleep(time.Duration(r.IntN(20)) * time.Microsecond)
			}
			time.Sleep(10 * time.Millisecond)
			expired := 0
			for n, i := range m.items {
				i.mu.Lock()
				expired += i.expired
				if i.deadline != Never {
					t.Errorf("item %d: deadline %v was forgotten, now it is %v", n, i.deadline, m.Now())
				}
				// A poller may be looking for datagrams when a deadline is set.
				if i.late > 0 && own || i.late > awaitPoll {
					t.Errorf("item %d: noticed after %v", n, i.late)
				}
				i.mu.Unlock()
			}
			if expired < 100 {
				t.Errorf("%d deadlines passed of 1200", expired)
			}
			m.s.alarm.mu.Lock()
			if n := len(m.s.alarm.items); n != 0 {
				t.Errorf("%d items are listed whose deadlines are over", n)
			}
			m.s.alarm.mu.Unlock()
			close(stop)
			pollers.Wait()
			m.close()
		})
	}
}

// TestDeadlineMoves checks that an item expires once, at the last of the deadlines that were set, be
// that earlier or later than the ones before, and whatever other items do.
func TestDeadlineMoves(t *testing.T) {
	const ms = time.Millisecond
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newScript(t, Config{}, 4)
			var expired []time.Duration
			began := time.Now()
			m.expire = func(i *item) {
				expired = append(expired, time.Since(began))
				if at := time.Duration(slices.Index(m.items, i)+1) * 10 * ms; at != time.Since(began) {
					t.Errorf("own goroutines %v: expires after %v, want %v", own, time.Since(began), at)
				}
			}
			stop := make(chan struct{})
			pollers := m.begin(mode{own: own}, stop)
			synctest.Wait()
			for n, in := range [][]time.Duration{{200 * ms, 10 * ms}, {5 * ms, 20 * ms}, {200 * ms, 1 * ms, 30 * ms}, {2 * ms, 200 * ms, 40 * ms}} {
				for _, in := range in {
					m.arm(m.items[n], in)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if len(expired) != len(m.items) {
				t.Errorf("own goroutines %v: they expire after %v", own, expired)
			}
			checkKept(t, m)
			close(stop)
			pollers.Wait()
			m.close()
		})
	}
}

// TestDeadlineWhilePolled checks that a caller of Await looks for datagrams no longer than
// awaitPoll at a time, and so notices what another goroutine sets.
func TestDeadlineWhilePolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		stop := make(chan struct{})
		pollers := m.begin(mode{}, stop)
		time.Sleep(awaitPoll / 4)
		m.arm(m.items[0], 0)
		time.Sleep(time.Second)
		synctest.Wait()
		if i := m.items[0]; i.expired != 1 || i.late > awaitPoll {
			t.Errorf("expired %d times, after %v", i.expired, i.late)
		}
		close(stop)
		pollers.Wait()
		m.close()
	})
}

// TestDeadlineLongAgo checks that an item that should have been looked at before the clock began is
// listed once, and expires once.
func TestDeadlineLongAgo(t *testing.T) {
	m := newScript(t, Config{}, 2)
	looks := 0
	m.expire = func(*item) { looks++ }
	for _, at := range []ack.Instant{0, -5, 0, 1} {
		m.s.Arm(&m.items[0].entry, 1, at)
	}
	if n := len(m.s.alarm.items); n != 1 {
		t.Errorf("it is listed %d times", n)
	}
	for range 2 {
		if m.s.expire(); looks != 1 {
			t.Errorf("it expired %d times", looks)
		}
	}
	m.close()
}

// TestEarlierDeadlineWins checks that the earlier of two deadlines that are set at the same
// time sets the timer.
func TestEarlierDeadlineWins(t *testing.T) {
	for range 3000 {
		m := newModel(t, Config{}, 2)
		m.s.own = true // without the goroutine that takes what the timer sends
		var ready atomic.Int32
		meet := func() {
			ready.Add(1)
			for ready.Load() < 2 {
				runtime.Gosched()
			}
		}
		late := make(chan struct{})
		go func() {
			meet()
			m.s.Arm(&m.items[0].entry, 1, ack.Instant(time.Hour))
			close(late)
		}()
		meet()
		m.s.Arm(&m.items[1].entry, 1, 1)
		<-late
		select {
		case <-m.s.alarm.timer.C:
		case <-time.After(10 * time.Second):
			t.Fatal("the timer was set later by a later deadline")
		}
	}
}

// TestDisarmedIsForgotten checks that a closed item is not kept until its deadline.
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

// TestDisarmedAsOthersExpire checks that an item that the end of another disarms neither
// expires nor is listed again.
func TestDisarmedAsOthersExpire(t *testing.T) {
	for _, moved := range []bool{false, true} {
		m := newScript(t, Config{}, 2)
		m.expire = func(i *item) {
			if i != m.items[0] {
				t.Error("it expired although it was disarmed")
			}
			m.s.Disarm(&m.items[1].entry)
		}
		m.s.Arm(&m.items[0].entry, 1, 1)
		m.s.Arm(&m.items[1].entry, 1, 2)
		if moved {
			m.s.Arm(&m.items[1].entry, 1, ack.Instant(time.Hour))
		}
		for m.Now() < 2 {
		}
		if m.s.expire(); len(m.s.alarm.items) != 0 {
			t.Errorf("moved on before %v: it is listed although it was disarmed", moved)
		}
		checkKept(t, m)
		m.close()
	}
}

// BenchmarkDeadline shows that a deadline of one item costs no walk over all of them.
func BenchmarkDeadline(b *testing.B) {
	for _, n := range []int{1, 64, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := newModel(nil, Config{}, n)
			for _, i := range m.items {
				m.s.Arm(&i.entry, 1, ack.Instant(time.Hour))
			}
			m.slow = func() {}
			one := m.items[n/2]
			b.ReportAllocs()
			for b.Loop() {
				now := m.Now()
				one.deadline = now
				m.s.Arm(&one.entry, now, now)
				m.s.expire()
			}
			if one.expired == 0 {
				b.Error("it did not expire")
			}
		})
	}
}

// TestDeadlineCostsNoWalk counts what BenchmarkDeadline measures: items that are looked
// at for the deadline of one.
func TestDeadlineCostsNoWalk(t *testing.T) {
	took := func(n int) time.Duration {
		r := testing.Benchmark(func(b *testing.B) {
			m := newModel(nil, Config{}, n)
			for _, i := range m.items {
				m.s.Arm(&i.entry, 1, ack.Instant(time.Hour))
			}
			one := m.items[n/2]
			for b.Loop() {
				now := m.Now()
				one.deadline = now
				m.s.Arm(&one.entry, now, now)
				m.s.expire()
			}
		})
		return time.Duration(r.NsPerOp())
	}
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	if one, many := took(1), took(4096); many > 20*one+2*time.Microsecond {
		t.Errorf("a deadline among 4096 costs %v, a single one %v", many, one)
	}
}
