package bottleneck

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Flow counts what of one flow came to a bottleneck, and how it fared.
type Flow struct {
	counts Counts
	delays *hdrhistogram.Histogram // in microseconds
}

// Counts are the counters of a [Flow]. What is in the queue is in none but Frames and Bytes.
type Counts struct {
	Frames, Bytes         uint64 // that came, dropped or not
	Dropped, DroppedBytes uint64 // by the full queue or CoDel
	Down                  uint64 // frames that came during an outage
	Marked                uint64 // frames that left with a mark
	LeftFrames, LeftBytes uint64
}

// Of delays three digits are known, up to mostDelay. Both are arbitrary.
const (
	delayDigits = 3
	mostDelay   = 100 * time.Second
)

func newFlow() *Flow {
	return &Flow{delays: hdrhistogram.New(1, mostDelay.Microseconds(), delayDigits)}
}

// Counts returns the counters.
func (f *Flow) Counts() Counts { return f.counts }

// Delay returns how long a share of the frames waited at most before their transmission
// began: Delay(0.95) is the 95th percentile. It is 0 if no frame did.
func (f *Flow) Delay(share float64) time.Duration {
	if f.delays.TotalCount() == 0 {
		return 0
	}
	return time.Duration(f.delays.ValueAtQuantile(100*share)) * time.Microsecond
}

func (f *Flow) in(size int) {
	f.counts.Frames++
	f.counts.Bytes += uint64(size)
}

func (f *Flow) waited(d time.Duration) {
	f.delays.RecordValue(min(d, mostDelay).Microseconds()) // it is in range
}

func (f *Flow) left(size int, marked bool) {
	f.counts.LeftFrames++
	f.counts.LeftBytes += uint64(size)
	if marked {
		f.counts.Marked++
	}
}

func (f *Flow) dropped(size int, why Reason) {
	if why == Down {
		f.counts.Down++
		return
	}
	f.counts.Dropped++
	f.counts.DroppedBytes += uint64(size)
}
