package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// carrier completes what is posted after some time, or at once, and checks what a load
// may do.
type carrier struct {
	t      *testing.T
	random *rand.Rand
	after  time.Duration // at most; 0: at once
	fails  uint64        // with which operation; 0: none
	err    error
	ends   error // of the wait for what has not arrived
	waited bool

	mu     sync.Mutex
	posted uint64
	under  map[*Op]bool
	most   int
	rounds map[int]uint32
}

func newCarrier(t *testing.T, after time.Duration) *carrier {
	return &carrier{t: t, random: rand.New(rand.NewPCG(1, 2)), after: after, under: map[*Op]bool{}, rounds: map[int]uint32{}}
}

func (c *carrier) Post(op *Op) (complete bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posted++
	if c.rounds[op.Slot]++; c.rounds[op.Slot] != op.Round || c.under[op] {
		c.t.Errorf("slot %d is posted for the %dth time, and says the %dth; under way: %v", op.Slot, c.rounds[op.Slot], op.Round, c.under[op])
	}
	if _, _, _, ok := patternOf(VerifyFull, op.Slot, op.Round).check(op.Bytes, true); !ok {
		c.t.Errorf("slot %d holds something else than its pattern", op.Slot)
	}
	if c.posted == c.fails {
		return false, c.err
	}
	c.most = max(c.most, len(c.under)+1)
	if c.after == 0 {
		time.Sleep(time.Microsecond)
		return true, nil
	}
	c.under[op] = true
	time.AfterFunc(1+time.Duration(c.random.Int64N(int64(c.after))), func() {
		c.mu.Lock()
		delete(c.under, op)
		c.mu.Unlock()
		op.Done(nil)
	})
	return false, nil
}

func (c *carrier) Wait(context.Context) error {
	if c.waited = true; len(c.under) > 0 {
		c.t.Errorf("%d operations are under way at the end", len(c.under))
	}
	return c.ends
}

// TestLoad: as many operations are outstanding as the plan says, no slot twice, each
// with its own bytes; every one that was posted is counted, and timed.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name  string
		plan  Plan
		after time.Duration
	}{
		{"one after the other", Plan{Size: 100, Depth: 1, Peers: 1, Active: 1}, 0},
		{"one", Plan{Size: 5000, Depth: 1, Peers: 1, Active: 1}, time.Millisecond},
		{"many", Plan{Size: 5000, Depth: 16, Peers: 4, Active: 64}, time.Millisecond},
		{"few of many slots", Plan{Size: 5000, Depth: 16, Peers: 4, Active: 3}, time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				to, times := newCarrier(t, c.after), NewHistogram()
				c.plan.Verify = VerifyFull
				l := NewLoad(c.plan, to, times)
				l.Start(time.Second)
				if err := l.Over(t.Context()); err != nil {
					t.Error(err)
				}
				if err := l.Drain(t.Context()); err != nil || !to.waited {
					t.Errorf("%v; the poster was waited for: %v", err, to.waited)
				}
				n, bytes, _ := l.Progress()
				if n != to.posted || n < 100 || bytes != n*uint64(c.plan.Size) || to.most != int(c.plan.Active) {
					t.Errorf("%d operations of %d, %d bytes, at most %d outstanding", n, to.posted, bytes, to.most)
				}
				if took := l.Elapsed(); took < time.Second || took > time.Second+c.after+time.Millisecond {
					t.Errorf("took %v", took)
				}
				if p := times.Quantile(1 - 1e-9); c.after > 0 && (p < c.after*9/10 || p > c.after*11/10) {
					t.Errorf("completions take %v at most, want %v", p, c.after)
				}
				for slot := range c.plan.slots() {
					if to.rounds[slot] == 0 {
						t.Errorf("slot %d was never used", slot)
					}
				}
			})
		})
	}
}

// TestLoadTimesAnEighth: of small operations each eighth is timed, also where each slot is used a few times only.
func TestLoadTimesAnEighth(t *testing.T) {
	t.Parallel()
	for _, long := range []time.Duration{2 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			times := NewHistogram()
			l := NewLoad(Plan{Size: 1000, Depth: 256, Peers: 4, Active: 1024, Verify: VerifyFull}, newCarrier(t, time.Second), times)
			l.Start(long)
			if err := errors.Join(l.Over(t.Context()), l.Drain(t.Context())); err != nil {
				t.Error(err)
			}
			n, _, _ := l.Progress()
			if rounds := n / 1024; rounds < 3 || long < 10*time.Second && rounds > 6 {
				t.Errorf("%d rounds", rounds)
			}
			if timed, want := float64(times.N()), float64(n)/8; timed < want*0.7 || timed > want*1.1 {
				t.Errorf("%d of %d were timed", times.N(), n)
			}
		})
	}
}

// TestLoadFails: the first failure ends the load, and is what it says; what is under
// way is waited for.
func TestLoadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		for _, after := range []time.Duration{0, time.Millisecond} {
			to := newCarrier(t, after)
			to.fails, to.err, to.ends = 7, broken, errors.New("broken at the end, too")
			l := NewLoad(Plan{Size: 64, Depth: 4, Peers: 1, Active: 4, Verify: VerifyFull}, to, nil)
			l.Start(time.Hour)
			if err := l.Over(t.Context()); err != nil {
				t.Error(err)
			}
			if err := l.Drain(t.Context()); err != broken {
				t.Errorf("%v; what failed first is the reason of the rest", err)
			}
			if n, _, _ := l.Progress(); n != to.posted-1 {
				t.Errorf("%d of %d operations are complete", n, to.posted)
			}
		}
	})
}

// TestLoadIsInterrupted: it is less than was wished, and said so; what was measured is
// good.
func TestLoadIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newCarrier(t, time.Millisecond)
		l := NewLoad(Plan{Size: 64, Depth: 4, Peers: 1, Active: 4, Verify: VerifyFull}, to, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		l.Start(time.Hour)
		if err := l.Over(ctx); !errors.Is(err, ErrInterrupted) || err.Error() != "interrupted after 20ms" {
			t.Error(err)
		}
		if err := l.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if n, _, _ := l.Progress(); n != to.posted || n < 20 {
			t.Errorf("%d of %d operations", n, to.posted)
		}
	})
}

// stuck never completes anything.
type stuck struct{}

func (stuck) Post(*Op) (bool, error)     { return false, nil }
func (stuck) Wait(context.Context) error { return nil }

// TestDrainIsBounded by its context.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoad(oneSlot(64), stuck{}, nil)
		l.Start(time.Millisecond)
		l.Over(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// BenchmarkLoad is what the generator itself costs for an operation.
func BenchmarkLoad(b *testing.B) {
	for name, verify := range map[string]Verify{"off": VerifyOff, "sample": VerifySample} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := &free{left: b.N}
			p := oneSlot(64)
			p.Verify = verify
			l := NewLoad(p, n, NewHistogram())
			l.Start(0)
			l.Over(b.Context())
		})
	}
}

// free completes everything at once, so often.
type free struct{ left int }

func (f *free) Post(*Op) (bool, error) {
	if f.left--; f.left < 0 {
		return false, ErrInterrupted
	}
	return true, nil
}
func (free) Wait(context.Context) error { return nil }
