package ack

import "github.com/dgrdma/dgrdma/frame"

// Heeding is a Controller that heeds marks of explicit congestion notification (ECN, RFC 3168).
type Heeding interface {
	// HeedsMarks reports whether it does now.
	HeedsMarks() bool
	// OnMarked reports frames that arrived with a mark, before EndBatch. Which ones is not known.
	OnMarked(now Instant, frames int)
}

// MarkState is what is known of whether marks get through to the peer, and back in what it acknowledges.
type MarkState uint8

// The states of marks.
const (
	MarksUnused MarkState = iota // the transport has none, or the controller does not heed them
	MarksTested                  // frames leave so that they can carry one; of none it is known that it arrived
	MarksWork                    // some have
	MarksPaused                  // nothing is acknowledged: the network may drop frames that can carry one
	MarksFailed                  // it does, or it clears marks, or the peer does not tell the truth
)

var markNames = [...]string{"", "testing", "on", "paused", "failed"}

// String returns a word for the state; empty: there are no marks.
func (s MarkState) String() string { return markNames[s] }

const (
	// mostMarkTests is how many tests in a row may end in a timeout. Once is chance, on a path that loses frames.
	mostMarkTests = 2
	// markTimeouts is after how many timeouts in a row a path is tried without marks on which they worked. Arbitrary: routes change.
	markTimeouts = 3
)

// flightMarks finds out whether marks are of use (RFC 9000, section 13.4.2, is the model). The peer counts each id once, with the mark of the copy
// that was applied. So what it counts is never more than the ids that could carry one, and never less than those of them that it acknowledged.
type flightMarks struct {
	state   MarkState
	on      bool   // frames leave so that they can carry a mark
	capable uint32 // ids that left so at least once
	acked   uint32 // ids that were acknowledged, and never left otherwise
	failed  int    // tests in a row
	told    frame.Marks
	upTo    uint32 // the highest cumulative acknowledgement
	newly   MarkNews
}

// MarkNews is what became known of marks.
type MarkNews struct {
	Marked int  // frames that arrived with one
	Failed bool // no frame leaves with one any more
}

// Marking reports whether frames are to leave so that they can carry a mark.
func (f *Flight) Marking() bool { return f.marks.on }

// Marks returns the state of marks.
func (f *Flight) Marks() MarkState {
	if k := &f.marks; k.on || k.state == MarksFailed || k.state == MarksPaused {
		return k.state
	}
	return MarksUnused
}

// TakeMarks returns what became known of marks since it was called.
func (f *Flight) TakeMarks() MarkNews {
	n := f.marks.newly
	f.marks.newly = MarkNews{}
	return n
}

// heedMarks looks whether the controller heeds marks.
func (f *Flight) heedMarks() {
	k := &f.marks
	if h, ok := f.ctl.(Heeding); !f.cfg.Marks || !ok || !h.HeedsMarks() {
		k.on = false
		return
	}
	if k.state == MarksUnused {
		k.state = MarksTested
	}
	k.on = k.state == MarksTested || k.state == MarksWork
}

// sent notes a transmission.
func (k *flightMarks) sent(s *flightFrame) {
	if k.on && !s.capable {
		k.capable++
	}
	s.capable = k.on && (s.capable || s.copies == 0)
}

// silent notes that another timeout passed.
func (k *flightMarks) silent(timeouts uint) {
	if worked := k.told != (frame.Marks{}); !k.on || worked && timeouts < markTimeouts {
		return
	}
	k.state, k.on = MarksPaused, false
	k.failed++
}

// heardAgain notes that something was acknowledged.
func (f *Flight) heardAgain() {
	k := &f.marks
	switch {
	case k.state != MarksPaused:
	case k.failed >= mostMarkTests:
		k.fail()
	default:
		k.state = MarksUnused
		f.heedMarks()
	}
}

func (k *flightMarks) fail() {
	k.state, k.on = MarksFailed, false
	k.newly.Failed = true
}

// believe takes what an acknowledgement says of marks. fresh: it acknowledged something for the first time, so that none came that is newer.
func (f *Flight) believe(now Instant, m frame.Marks, fresh bool) {
	k := &f.marks
	if k.state == MarksFailed {
		return
	}
	total, shrank := m.Capable+m.Congested, int32(m.Capable-k.told.Capable) < 0 || int32(m.Congested-k.told.Congested) < 0
	switch {
	case shrank && !fresh:
		return // it came late
	case shrank, int32(k.capable-total) < 0, int32(total-k.acked) < 0:
		k.fail()
		return
	}
	marked := int(m.Congested - k.told.Congested)
	if total != k.told.Capable+k.told.Congested { // a frame with a mark got through
		if k.failed = 0; k.state == MarksTested {
			k.state = MarksWork
		}
	}
	k.told = m
	if marked == 0 {
		return
	}
	k.newly.Marked += marked
	if h, ok := f.ctl.(Heeding); ok {
		h.OnMarked(now, marked)
	}
}
