package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestHistogram(t *testing.T) {
	h := NewHistogram()
	if h.Quantile(0.5) != 0 || h.Times() != (Times{}) || h.Steps() != nil || h.N() != 0 {
		t.Error("something is in an empty one")
	}
	for i := range time.Duration(100_000) {
		h.Add(i + 1)
	}
	within := func(what string, got time.Duration, want float64) {
		t.Helper()
		if g := float64(got); g < want*0.999 || g > want*1.001 {
			t.Errorf("%s is %v, want %v", what, g, want)
		}
	}
	within("a thousandth", h.Quantile(0.001), 100)
	s := h.Times()
	within("p50", s.P50, 50_000)
	within("p90", s.P90, 90_000)
	within("p99", s.P99, 99_000)
	within("p99.9", s.P999, 99_900)
	if s.N != 100_000 || s.Min != 1 || s.Most != 100_000 || h.Quantile(0) != 1 || h.Quantile(1) != 100_000 {
		t.Errorf("%+v", s)
	}
	h.Add(-1)
	h.Add(1 << 62)
	if s := h.Times(); s.N != 100_002 || s.Min != 0 || s.Most != mostTime {
		t.Errorf("%+v; want what is out of range at its ends", s)
	}
}

// TestHistogramSteps: each step has what is up to its bound, to a thousandth, and above the
// one before; the first and the last are not empty, and none is left out between them.
func TestHistogramSteps(t *testing.T) {
	h := NewHistogram()
	for _, us := range []int{8, 10, 11, 15, 16, 100} {
		h.Add(time.Duration(us) * time.Microsecond)
	}
	us := time.Microsecond
	want := []Step{{10 * us, 2}, {15 * us, 2}, {20 * us, 1}, {30 * us, 0}, {50 * us, 0}, {70 * us, 0}, {100 * us, 1}}
	if got := h.Steps(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// 2000.532 us cannot be told apart from 2000 us, but no step up to 2000 us has it.
	h.Add(2_000_532)
	if got := h.Steps(); got[len(got)-1] != (Step{3000 * us, 1}) {
		t.Errorf("the longest is in %v, want one up to 3 ms", got[len(got)-1])
	}
	const seed = 5
	random, h, last := rand.New(rand.NewPCG(seed, 0)), NewHistogram(), time.Duration(0)
	for range 1000 {
		h.Add(time.Duration(random.Int64N(1 << random.IntN(42))))
	}
	sum := uint64(0)
	for _, s := range h.Steps() {
		if s.UpTo <= last {
			t.Errorf("seed %d: a step up to %v behind one up to %v", seed, s.UpTo, last)
		}
		last = s.UpTo
		sum += s.N
	}
	if sum != 1000 || last < h.Times().Most {
		t.Errorf("seed %d: %d of 1000, up to %v of %v", seed, sum, last, h.Times().Most)
	}
}

// TestHistogramAllocatesNothing for what is added.
func TestHistogramAllocatesNothing(t *testing.T) {
	h := NewHistogram()
	if n := fixture.Allocations(1000, func() { h.Add(12345) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHistogram(b *testing.B) {
	h := NewHistogram()
	for i := range b.N {
		h.Add(time.Duration(i & 0xfffff))
	}
}
