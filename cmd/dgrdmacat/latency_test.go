package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/bench"
)

// wantLatencies expects that a JSON object has them all, in their order, and a histogram of as
// many, or with 0 of some.
func wantLatencies(t *testing.T, got map[string]any, n float64) {
	t.Helper()
	last := 0.0
	for _, key := range []string{"min_us", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"} {
		v, ok := got[key].(float64)
		if !ok || v <= 0 || v < last {
			t.Errorf("%s is %v", key, got[key])
		}
		last = v
	}
	sum, top := 0.0, 0.0
	steps, _ := got["histogram"].([]any)
	for _, s := range steps {
		s := s.(map[string]any)
		if upTo := s["up_to_us"].(float64); upTo <= top {
			t.Errorf("a step up to %v behind one up to %v", upTo, top)
		} else {
			top = upTo
		}
		sum += s["count"].(float64)
	}
	if sum == 0 || n != 0 && sum != n || top < last {
		t.Errorf("%v of %v in the histogram, up to %v us; the longest took %v", sum, n, top, last)
	}
}

func TestLatenciesAreDrawn(t *testing.T) {
	h := bench.NewHistogram()
	for _, us := range []time.Duration{3, 3, 3, 4, 1500} {
		h.Add(us * time.Microsecond)
	}
	const want = `completion   min 3.0 us, p50 3.0 us, p90 1500.0 us, p99 1500.0 us, p99.9 1500.0 us, max 1500.0 us
        <= 3 us           3   60.00 %  ##############################
        <= 5 us           1   20.00 %  ##########
        <= 7 us           0    0.00 %
       <= 10 us           0    0.00 %
`
	var b strings.Builder
	l := latenciesOf(h, true)
	l.describe(&b, "completion")
	if got := b.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\n     <= 1500 us           1   20.00 %  ##########\n") {
		t.Error(got)
	}
	b.Reset()
	l = latenciesOf(bench.NewHistogram(), true)
	if l.describe(&b, "completion"); b.String() != "completion   not measured\n" {
		t.Error(b.String())
	}
}
