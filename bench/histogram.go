package bench

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets that are at most 1/32 wide. Anyone may
// add at any time.
type Histogram struct {
	buckets [64 * histogramParts]atomic.Uint64
	n       atomic.Uint64
}

const histogramParts = 32

func histogramBucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < histogramParts {
		return int(v)
	}
	shift := bits.Len64(v) - 6
	return (shift+1)*histogramParts + int(v>>shift) - histogramParts
}

// histogramValue returns the middle of a bucket.
func histogramValue(bucket int) time.Duration {
	if bucket < 2*histogramParts {
		return time.Duration(bucket)
	}
	shift := bucket/histogramParts - 1
	low := uint64(bucket%histogramParts+histogramParts) << shift
	return time.Duration(low + 1<<shift/2)
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.buckets[histogramBucket(d)].Add(1)
	h.n.Add(1)
}

// Quantile returns the duration that a share q of what was added does not exceed.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n.Load()))
	for i := range h.buckets {
		if n := h.buckets[i].Load(); n > rank {
			return histogramValue(i)
		} else {
			rank -= n
		}
	}
	return 0
}
