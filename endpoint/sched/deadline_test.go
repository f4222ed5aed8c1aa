package sched

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestDeadlineMoves: an item expires once, at the last of the deadlines that were set, be
// that earlier or later than the ones before, and whatever others do.
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
			drivers := m.begin(mode{own: own}, stop)
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
			kept(t, m)
			close(stop)
			drivers.Wait()
			m.close()
		})
	}
}

// TestDeadlineWhileDriven: who waits looks for datagrams no longer than atATime at a
// time, and so notices what somebody else sets meanwhile.
func TestDeadlineWhileDriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(t, Config{}, 1)
		stop := make(chan struct{})
		drivers := m.begin(mode{}, stop)
		time.Sleep(atATime / 4)
		m.arm(m.items[0], 0)
		time.Sleep(time.Second)
		synctest.Wait()
		if i := m.items[0]; i.expired != 1 || i.late > atATime {
			t.Errorf("expired %d times, after %v", i.expired, i.late)
		}
		close(stop)
		drivers.Wait()
		m.close()
	})
}

// TestDeadlineLongAgo: an item that should have been looked at before the clock began is
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

// TestDisarmedAsOthersExpire: what one deadline ends does not expire itself, nor is it
// listed again.
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
		kept(t, m)
		m.close()
	}
}
