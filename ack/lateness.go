package ack

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

const (
	// lateBy is how many ids of ours may have passed since a frame was
	// overtaken for its acknowledgements to be believed: half the id space,
	// for then none of the ids it can name has been used again.
	lateBy    = 1 << 15
	lateMarks = 16
	// A jump of the peer's ids by more than this must be seen twice before it
	// is believed. Arbitrary: wider than the reordering of a bonded link, far
	// narrower than the distance of a random id.
	plausibleJump = 1024
	// fastest is less than the time any peer takes for one id: the silence
	// before a jump must be long enough for the ids that were lost. Copies from
	// before a wrap come amid what the peer sends now.
	fastest = 100 * time.Nanosecond
)

// Lateness tells the frames of a peer that the network held back. Their
// acknowledgements must not be believed once our ids may have wrapped: they
// would acknowledge frames that nobody received. Age is counted in ids of
// ours, not in time: while we stand still, nothing grows too old.
type Lateness struct {
	marks  [lateMarks]lateMark // where the peer's ids were, oldest first
	n      int
	newest frame.Seq
	at     int64     // place of newest, counted without wrapping
	jump   frame.Seq // a distant id that was seen once
	jumped bool
	heard  Instant // when the peer's ids last were where we know them
}

type lateMark struct {
	used uint32
	at   int64
}

// Late takes notice of a frame and reports whether its acknowledgements are too
// old to be believed. used counts the ids that we have used so far.
func (l *Lateness) Late(now Instant, s frame.Seq, used uint32) bool {
	if l.n == 0 {
		l.restart(now, s, used)
		return false
	}
	d := s.Diff(l.newest)
	if d > plausibleJump {
		// Either much was lost, or this is a copy from before the peer's ids
		// wrapped. Copies are few; after a loss nothing else comes.
		near := s.Diff(l.jump)
		silence := now.Sub(l.heard)
		if l.jumped && near != 0 && near >= -plausibleJump && near <= plausibleJump && silence >= time.Duration(d)*fastest {
			l.restart(now, s, used)
			return false
		}
		l.jump, l.jumped = s, true
		return true
	}
	l.jumped = false
	if d > -plausibleJump {
		l.heard = now
	}
	if d > 0 {
		l.newest = s
		l.at += int64(d)
		if used-l.marks[l.n-1].used >= lateBy/(lateMarks/2) {
			l.mark(used)
		}
		return false
	}
	for i := l.n - 1; i >= 0; i-- {
		if m := l.marks[i]; l.at+int64(d) < m.at && used-m.used > lateBy {
			return true
		}
	}
	return false
}

func (l *Lateness) restart(now Instant, s frame.Seq, used uint32) {
	*l = Lateness{newest: s, heard: now}
	l.mark(used)
}

func (l *Lateness) mark(used uint32) {
	if l.n == lateMarks {
		copy(l.marks[:], l.marks[1:])
		l.n--
	}
	l.marks[l.n] = lateMark{used, l.at}
	l.n++
}
