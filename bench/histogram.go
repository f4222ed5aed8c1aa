package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A histogram tells apart times up to mostTime that differ by a thousandth. That takes
// 270 KB, of which only what is counted comes into the processor's caches.
const (
	timeDigits = 3
	mostTime   = time.Hour
)

// Histogram counts durations. Anyone may add at any time.
type Histogram struct {
	mu          sync.Mutex
	counts      *hdrhistogram.Histogram // of nanoseconds
	least, most time.Duration
}

// NewHistogram makes an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{counts: hdrhistogram.New(1, int64(mostTime), timeDigits), least: mostTime}
}

// Add counts a duration. What is longer than mostTime counts as that.
func (h *Histogram) Add(d time.Duration) {
	d = min(max(d, 0), mostTime)
	h.mu.Lock()
	h.counts.RecordValue(int64(d)) // it is in range
	h.least, h.most = min(h.least, d), max(h.most, d)
	h.mu.Unlock()
}

// N returns how many were added.
func (h *Histogram) N() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return uint64(h.counts.TotalCount())
}

// Quantile returns the duration that a share q of what was added does not exceed; 0 if
// nothing was.
func (h *Histogram) Quantile(q float64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.quantile(q)
}

// quantile is Quantile. Guarded by mu.
func (h *Histogram) quantile(q float64) time.Duration {
	if h.counts.TotalCount() == 0 {
		return 0
	}
	return min(max(time.Duration(h.counts.ValueAtPercentile(100*q)), h.least), h.most)
}

// Times sum up a histogram.
type Times struct {
	N                              uint64
	Min, P50, P90, P99, P999, Most time.Duration
}

// Times returns what was added so far, in sum.
func (h *Histogram) Times() Times {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts.TotalCount() == 0 {
		return Times{}
	}
	return Times{
		uint64(h.counts.TotalCount()), h.least, h.quantile(0.5), h.quantile(0.9), h.quantile(0.99), h.quantile(0.999), h.most,
	}
}

// Step is how many durations there are up to a bound, and above that of the step before.
type Step struct {
	UpTo time.Duration
	N    uint64
}

// stepBounds are the bounds in a decade: few enough for a screen, and about equally far apart on
// a logarithmic axis.
var stepBounds = []time.Duration{10, 15, 20, 30, 50, 70}

// stepBound returns a bound of all that there are, from 10 ns on.
func stepBound(i int) time.Duration {
	bound := stepBounds[i%len(stepBounds)]
	for range i / len(stepBounds) {
		bound *= 10
	}
	return bound
}

// Steps returns the distribution, from the first step that has any to the last, which has the
// longest. Others are told apart from a bound as exactly as from each other.
func (h *Histogram) Steps() []Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Step
	i := 0
	for _, bar := range h.counts.Distribution() {
		if bar.Count == 0 {
			continue
		}
		least := time.Duration(bar.From)
		if time.Duration(bar.To) >= h.most {
			least = h.most
		}
		for least > stepBound(i) {
			if i++; len(all) > 0 {
				all = append(all, Step{UpTo: stepBound(i)})
			}
		}
		if len(all) == 0 {
			all = append(all, Step{UpTo: stepBound(i)})
		}
		all[len(all)-1].N += uint64(bar.Count)
	}
	return all
}
