package ack

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// mostPendingAcks bounds the list of runs that wait for a frame to carry them. Beyond
// it the oldest is forgotten: its frames come again, and are then acknowledged.
const mostPendingAcks = 64

// PendingAcks holds the acknowledgements that are owed to a peer until outgoing frames
// take them along, or until they may wait no longer. It lives under the
// connection's lock, between the receiver and the sender.
type PendingAcks struct {
	runs   []waiting
	frames int     // accepted since nothing waited
	at     Instant // the earliest of the runs
	every  int
	delay  time.Duration
}

// waiting is a run that a frame will take along.
type waiting struct {
	must Range // what nothing else acknowledges, and perhaps ids between
	run  Range // that, and what is repeated with it
	at   Instant
}

// Init sets after how many frames, and after which time, an acknowledgement
// does not wait for company any more.
func (d *PendingAcks) Init(every int, delay time.Duration) {
	*d = PendingAcks{runs: d.runs[:0], every: every, delay: delay}
}

// Take moves what r has become due into d. Copies are acknowledged at once, and
// frames behind a gap with all that waits.
func (d *PendingAcks) Take(now Instant, r *Receiver) {
	if len(r.due)+len(r.again) == 0 {
		return
	}
	for _, run := range r.due {
		d.add(waiting{must: run, at: now.Add(d.delay)}, r)
	}
	for _, run := range r.again {
		d.add(waiting{must: run, at: now}, r)
	}
	if d.frames += r.fresh; r.gap || d.frames >= d.every {
		d.Hold(now)
	}
	r.DropPending()
	d.look()
}

// add joins w with what waits already: a frame for each run would be a frame for
// each id where new ones alternate with copies.
func (d *PendingAcks) add(w waiting, r *Receiver) {
	for i := range d.runs {
		o := &d.runs[i]
		if covers(o.run, w.must) {
			o.must, o.at = hull(o.must, w.must), min(o.at, w.at)
			return
		}
	}
	w.run = r.extend(w.must)
	kept := d.runs[:0]
	for _, o := range d.runs {
		switch {
		case r.join(w.run, o.run) || r.join(o.run, w.run):
			w.run = hull(w.run, o.run)
			fallthrough
		case covers(w.run, o.must):
			w.must, w.at = hull(w.must, o.must), min(w.at, o.at)
		default:
			kept = append(kept, o)
		}
	}
	if len(kept) == mostPendingAcks {
		kept = kept[:copy(kept, kept[1:])]
	}
	d.runs = append(kept, w)
}

func covers(a, b Range) bool {
	from := b.Start.Diff(a.Start)
	return from >= 0 && from+int(b.Count) <= int(a.Count)
}

// join reports whether b follows a and both fit one frame.
func (r *Receiver) join(a, b Range) bool {
	return a.Start.Add(int(a.Count)) == b.Start && int(a.Count)+int(b.Count) <= MaxRun && r.joins(b.Start)
}

// hull returns the run from the first to the last id of two that lie within one.
func hull(a, b Range) Range {
	if b.Start.Before(a.Start) {
		a, b = b, a
	}
	end := max(int(a.Count), b.Start.Diff(a.Start)+int(b.Count))
	return Range{a.Start, uint8(end)}
}

// look notes when the first of the runs must leave.
func (d *PendingAcks) look() {
	for i := range d.runs {
		if i == 0 || d.runs[i].at < d.at {
			d.at = d.runs[i].at
		}
	}
}

// Next hands out the next run for a frame about to be sent, the one that waits no
// longer first.
func (d *PendingAcks) Next() (Range, bool) {
	for i := range d.runs {
		if d.runs[i].at > d.at {
			continue
		}
		run := d.runs[i].run
		d.runs = append(d.runs[:i], d.runs[i+1:]...)
		if d.look(); len(d.runs) == 0 {
			d.frames = 0
		}
		return run, true
	}
	return Range{}, false
}

// Hold makes what waits leave at that moment, unless something carries it before.
func (d *PendingAcks) Hold(until Instant) {
	for i := range d.runs {
		d.runs[i].at = until
	}
	d.at = until
}

// Deadline returns when the waiting acknowledgements must leave by themselves.
func (d *PendingAcks) Deadline() (t Instant, armed bool) { return d.at, len(d.runs) > 0 }

// Run returns the range from first to last, at most 255 ids.
func Run(first, last frame.Seq) Range { return Range{first, uint8(last.Diff(first) + 1)} }
