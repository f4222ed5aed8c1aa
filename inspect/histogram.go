package inspect

import (
	"math/bits"
	"time"
)

// histogramBuckets reach to 18 minutes, four to an octave.
const histogramBuckets = 4 * 40

// histogram counts times in buckets that are at most a quarter wide.
type histogram struct {
	counts   [histogramBuckets]int
	n        int
	sum      time.Duration
	min, max time.Duration
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 4 {
		return int(v)
	}
	shift := bits.Len64(v) - 3
	return min(4*shift+int(v>>shift), histogramBuckets-1)
}

// bucketFrom returns where a bucket begins.
func bucketFrom(i int) time.Duration {
	if i < 8 {
		return time.Duration(i)
	}
	shift := i/4 - 1
	return time.Duration(i%4+4) << shift
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	if h.n == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.counts[bucketOf(d)]++
	h.n++
	h.sum += d
}

// quantile returns the middle of the bucket in which a share q is reached.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(q * float64(h.n))
	for i, n := range h.counts {
		if rank < n {
			middle := (bucketFrom(i) + bucketFrom(i+1)) / 2
			return min(max(middle, h.min), h.max)
		}
		rank -= n
	}
	return h.max
}

// Histogram is how long something took.
type Histogram struct {
	Count   int           `json:"count"`
	Mean    time.Duration `json:"mean_ns"`
	Min     time.Duration `json:"min_ns"`
	P50     time.Duration `json:"p50_ns"`
	P90     time.Duration `json:"p90_ns"`
	P99     time.Duration `json:"p99_ns"`
	Max     time.Duration `json:"max_ns"`
	Buckets []Bucket      `json:"buckets"` // those that are not empty, and what lies between
}

// Bucket counts times from From up to To.
type Bucket struct {
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Count int           `json:"count"`
}

func (h *histogram) report() Histogram {
	r := Histogram{Count: h.n, Min: h.min, Max: h.max}
	if h.n == 0 {
		return r
	}
	r.Mean = h.sum / time.Duration(h.n)
	r.P50, r.P90, r.P99 = h.quantile(0.5), h.quantile(0.9), h.quantile(0.99)
	for i := bucketOf(h.min); i <= bucketOf(h.max); i++ {
		r.Buckets = append(r.Buckets, Bucket{bucketFrom(i), bucketFrom(i + 1), h.counts[i]})
	}
	return r
}
