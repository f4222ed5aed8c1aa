package sched

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestDeadlines: each is noticed when it passes and not before, however often it was
// moved, and none that was taken back.
func TestDeadlines(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, Config{}, 50)
			stop := make(chan struct{})
			drivers := m.begin(mode{own: own}, stop)
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
				// Who drives may be looking for datagrams when a deadline is set.
				if i.late > 0 && own || i.late > atATime {
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
			drivers.Wait()
			m.close()
		})
	}
}

// TestEarlierDeadlineWins: two items that set the timer at the same time.
func TestEarlierDeadlineWins(t *testing.T) {
	for range 3000 {
		m := newModel(t, Config{}, 2)
		m.s.own = true // with nobody who takes what the timer sends
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

// BenchmarkDeadline: a deadline of one item costs no walk over all of them.
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
