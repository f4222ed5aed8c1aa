package ack

const (
	// lateBy is how many ids of ours may have passed since a frame was
	// overtaken for its acknowledgements to be believed. They name ids up to
	// MaxHistory older than those of that time, and may be compared with the
	// oldest unacknowledged one over half the id space.
	lateBy    = 1<<15 - MaxHistory - 2*MaxRun
	lateMarks = 16
)

// Lateness tells the frames of a peer that the network held back. Their
// acknowledgements must not be believed once our ids may have wrapped: they
// would acknowledge frames that nobody received. Age is counted in ids of
// ours, not in time: while we stand still, nothing grows too old.
type Lateness struct {
	marks  [lateMarks]lateMark // how far both sides were, oldest first
	n      int
	newest Wide
}

type lateMark struct{ ours, theirs Wide }

// Late takes notice of a frame of the peer and reports whether its
// acknowledgements are too old to be believed. ours is the next id that we use.
func (l *Lateness) Late(theirs, ours Wide) bool {
	if l.n == 0 || theirs.Diff(l.newest) > 0 {
		l.newest = theirs
		if l.n == 0 || ours.Diff(l.marks[l.n-1].ours) >= lateBy/(lateMarks/2) {
			l.mark(lateMark{ours, theirs})
		}
		return false
	}
	for i := l.n - 1; i >= 0; i-- {
		if m := l.marks[i]; theirs.Diff(m.theirs) < 0 && ours.Diff(m.ours) > lateBy {
			return true
		}
	}
	return false
}

func (l *Lateness) mark(m lateMark) {
	if l.n == lateMarks {
		copy(l.marks[:], l.marks[1:])
		l.n--
	}
	l.marks[l.n] = m
	l.n++
}
