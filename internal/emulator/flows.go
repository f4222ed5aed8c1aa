package emulator

import (
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// FlowStats says how a flow fared at its bottleneck.
type FlowStats struct {
	FlowKey
	bottleneck.Counts

	Delay95 time.Duration // waiting for the transmission to begin, 95th percentile
}

// stats returns what there is of each flow, those with most bytes first.
func (d *direction) stats() (all []FlowStats) {
	for key, f := range d.flows {
		all = append(all, FlowStats{key, f.Counts(), f.Delay(0.95)})
	}
	if c := d.other.Counts(); c.Frames > 0 {
		all = append(all, FlowStats{FlowKey{}, c, d.other.Delay(0.95)})
	}
	slices.SortFunc(all, func(a, b FlowStats) int {
		if a.Bytes != b.Bytes {
			return int(b.Bytes) - int(a.Bytes)
		}
		return a.From.Compare(b.From)
	})
	return all
}

// Direction says how all of one way fared.
type Direction struct {
	bottleneck.Counts

	Lost    uint64 // packets, after the bottleneck
	Delay95 time.Duration
	Flows   []FlowStats
}

func (d *direction) sum() Direction {
	all := d.queue.All()
	return Direction{all.Counts(), d.lost, all.Delay(0.95), d.stats()}
}
