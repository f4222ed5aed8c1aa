package ack

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// maxDue bounds the list of runs that wait for a frame to carry them. Beyond
// it the oldest is forgotten: its frames come again, and are then acknowledged.
const maxDue = 64

// Due holds the acknowledgements that are owed to a peer until outgoing frames
// take them along, or until they may wait no longer. It lives under the
// connection's lock, between the receiver and the sender.
type Due struct {
	runs   []Range
	frames int
	at     Instant
	every  int
	delay  time.Duration
}

// Init sets after how many frames, and after which time, an acknowledgement
// does not wait for company any more.
func (d *Due) Init(every int, delay time.Duration) {
	*d = Due{runs: d.runs[:0], every: every, delay: delay}
}

// Take moves what r has become due into d.
func (d *Due) Take(now Instant, r *Receiver) {
	fresh, urgent := r.Due()
	before := len(d.runs)
	d.runs = r.AppendDue(d.runs)
	if len(d.runs) == before && !urgent {
		return
	}
	// A run that was waiting and is repeated inside a newer one is done.
	if r.cfg.Repeat && before > 0 {
		d.dropCovered(before)
	}
	if n := len(d.runs) - maxDue; n > 0 {
		d.runs = d.runs[:copy(d.runs, d.runs[n:])]
	}
	if before == 0 {
		d.at = now.Add(d.delay)
	}
	if d.frames += fresh; urgent || d.frames >= d.every {
		d.at = now
	}
}

func (d *Due) dropCovered(before int) {
	kept := d.runs[:0]
	for i, run := range d.runs {
		if i < before && coveredBy(run, d.runs[before:]) {
			continue
		}
		kept = append(kept, run)
	}
	d.runs = kept
}

func coveredBy(run Range, by []Range) bool {
	for _, b := range by {
		if covers(b, run) {
			return true
		}
	}
	return false
}

// Next hands out the next run for a frame about to be sent.
func (d *Due) Next() (Range, bool) {
	if len(d.runs) == 0 {
		return Range{}, false
	}
	run := d.runs[0]
	d.runs = d.runs[:copy(d.runs, d.runs[1:])]
	if len(d.runs) == 0 {
		d.frames = 0
	}
	return run, true
}

// Hold makes what waits leave at that moment, unless something carries it before.
func (d *Due) Hold(until Instant) { d.at = until }

// Deadline returns when the waiting acknowledgements must leave by themselves.
func (d *Due) Deadline() (t Instant, armed bool) { return d.at, len(d.runs) > 0 }

// Run returns the range from first to last, at most 255 ids.
func Run(first, last frame.Seq) Range { return Range{first, uint8(last.Diff(first) + 1)} }
