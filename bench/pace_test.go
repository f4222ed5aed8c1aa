package bench

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestPacer: as much is let through as the rate allows, from the first on, in bursts where
// operations are small; what is late is made up for, up to a bound.
func TestPacer(t *testing.T) {
	for _, c := range []struct {
		rate uint64
		size uint32
	}{{1e6, 100}, {1e9, 64}, {1e6, 1 << 20}, {125e6, 65536}} {
		p := newPacer(c.rate, c.size)
		now, passed, waits := time.Duration(0), 0.0, 0
		if _, ok := p.take(0); ok {
			t.Fatal("the first one does not wait its turn")
		}
		long := max(20*burst, time.Duration(1000*float64(c.size)/float64(c.rate)*float64(time.Second)))
		for now < long {
			wait, ok := p.take(now)
			if ok {
				passed++
				continue
			}
			if wait <= 0 {
				t.Fatalf("%+v: waits %v", c, wait)
			}
			if most := float64(c.rate) * now.Seconds(); passed*float64(c.size) > most+0.001 {
				t.Fatalf("%+v: %v passed within %v, which have room for %v bytes", c, passed, now, most)
			}
			now += wait
			waits++
		}
		if want := float64(c.rate) * now.Seconds() / float64(c.size); math.Abs(passed-want) > 1+float64(c.rate)*burst.Seconds()/float64(c.size) { // the last burst
			t.Errorf("%+v: %v passed, want %v", c, passed, want)
		}
		if most := now / burst; waits > int(most)+1 {
			t.Errorf("%+v: waited %d times in %v", c, waits, now)
		}
	}
	p := newPacer(1e6, 100)
	n := 0
	for ok := true; ok; n++ {
		_, ok = p.take(time.Hour)
	}
	if want := int(1e6 * mostLate.Seconds() / 100); n < want || n > want+2 {
		t.Errorf("%d at once after an hour, want %d", n, want)
	}
	p = newPacer(1, 1<<30)
	p.take(0)
	if wait, ok := p.take(1); ok || wait != maxWait+1 {
		t.Errorf("%v %v", wait, ok)
	}
}

// TestLoadIsPaced: operations are begun at the rate, whether they are complete at once or
// later, each once; when it is over, those that waited are not posted.
func TestLoadIsPaced(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond} {
		for _, p := range []Plan{
			{Size: 1000, Depth: 1, Peers: 1, Active: 1, Rate: 100_000},
			{Size: 1000, Depth: 16, Peers: 2, Active: 8, Rate: 1_000_000},
			{Size: 1000, Depth: 16, Peers: 2, Active: 32, Rate: 1_000_000},
		} {
			synctest.Test(t, func(t *testing.T) {
				p.Verify = VerifyFull
				to := newCarrier(t, after)
				l := NewLoad(p, to, NewHistogram())
				l.Start(2 * time.Second)
				if err := l.Over(t.Context()); err != nil {
					t.Error(err)
				}
				if err := l.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				n, _, _ := l.Progress()
				if want := 2 * float64(p.Rate) / 1000; n != to.posted || float64(n) < want*0.98 || float64(n) > want+2 {
					t.Errorf("%+v: %d operations of %d, want %v", p, n, to.posted, want)
				}
				if took := l.Elapsed(); took > 2*time.Second+10*time.Millisecond {
					t.Errorf("took %v", took)
				}
				if q := l.times.Quantile(1); q > after+time.Millisecond {
					t.Errorf("completions take %v: the wait for their turn is no part of it", q)
				}
			})
		}
	}
}

// TestLoadWithoutOperations only waits.
func TestLoadWithoutOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoad(Plan{Size: 1000, Peers: 1, Rate: 5}, stuck{}, nil)
		l.Start(time.Second)
		if err := l.Over(t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.Drain(t.Context()); err != nil || l.Elapsed() != time.Second {
			t.Errorf("%v after %v", err, l.Elapsed())
		}
	})
}

// TestPieceAt: a piece is a hundredth of a second of the rate at most, but for rates of a few bytes.
func TestPieceAt(t *testing.T) {
	for rate, want := range map[uint64]uint32{0: 1 << 20, 1: 64, 6399: 64, 12799: 64, 12800: 128, 125_000: 1024, 1_250_000: 8192, 125_000_000: 1 << 20, 1e15: 1 << 20} {
		if got := PieceAt(rate); got != want {
			t.Errorf("%d bytes a second: %d, want %d", rate, got, want)
		}
	}
}
