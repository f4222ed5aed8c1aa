package inspect

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// shortestTimeout is less than any sender waits before it repeats a frame
// without having heard of later ones. Ours wait for an acknowledgement, and that much
// longer, the others 200 ms.
const shortestTimeout = ack.Granularity * 4 / 5

// atOnce stands for shortestTimeout where a frame came after later ones: those may have made
// its sender repeat it already, so that only a copy that follows sooner is the network's.
const atOnce = 20 * time.Microsecond

// message takes a frame with messages.
func (f *flow) message(s *seen) {
	w, ok := f.place(s)
	if !ok {
		return
	}
	first := briefOf(&s.messages[0])
	x := f.ids.known(w)
	switch {
	case x == nil && !f.ids.fresh(w):
		f.old(s, first)
	case x == nil, x.state == slotMissing, x.state == slotHidden, x.state == slotOther:
		f.firstSight(s, w, first)
	case x.brief == first:
		f.again(s, x)
	case f.postedAgain(s, x, first):
		if f.live++; f.firstLive == 0 {
			f.firstLive = s.record
		}
		f.sentAgain(s, x)
	default:
		f.conflict(s, first)
	}
}

// postedAgain reports whether a frame under the id of x is x as OpenCPI's first
// C++ driver sends it again once its request was posted again: it has the header
// that the request has by then, whose transaction has frames of its own. The first
// frames of another life look alike, but their ids were acknowledged before.
func (f *flow) postedAgain(s *seen, x *slot, m brief) bool {
	return m.place == x.brief.place && int32(m.txn-x.brief.txn) > 0 && f.tx.any && int32(f.tx.newest-m.txn) >= 0 &&
		!(x.acked && firstOfLife(s))
}

// firstOfLife reports whether a frame can be one of the first that OpenCPI's
// implementations send: they begin with id 1 and transaction 1.
func firstOfLife(s *seen) bool { return s.Seq <= 8 && s.messages[0].Txn <= 8 }

// conflict takes a frame that has the id of another one.
func (f *flow) conflict(s *seen, first brief) {
	f.conflicts++
	if f.firstConflict == 0 {
		f.firstConflict = s.record
	}
	if !firstOfLife(s) && !f.strays.note(s) {
		return
	}
	f.conflicts = max(f.conflicts-max(f.strays.n, 1), 0)
	f.believed(s)
	f.restart(s, "ids began anew, with other content")
	f.firstSight(s, f.ids.newest, first)
}

// oldApart is how far from each other frames may be that make a numbering together, of ids before all that are remembered. Arbitrary: what a network
// holds back is farther apart mostly, or less than backBelieved.
const oldApart = 8

// old takes a frame with an id before all that are remembered: the network held it back, or, if many of them follow each other, the capture lost nearly
// as many as there are ids.
func (f *flow) old(s *seen, first brief) {
	f.tooOld++
	if f.strays.noteRun(s, oldApart, backBelieved) {
		f.tooOld -= backBelieved
		f.leap(s)
		f.firstSight(s, f.ids.newest, first)
	}
}

// firstSight takes a frame that was not seen before.
func (f *flow) firstSight(s *seen, w ack.Wide, first brief) {
	x := f.ids.at(w)
	hidden := x.state == slotHidden && x.id == w
	acked := (x.state == slotMissing || hidden) && x.acked && x.id == w
	// A first copy may be behind the snap length, and a sender leaves out the id of a bell, to find a receiver that acknowledges what did not come.
	late := w != f.ids.newest && !hidden && s.head.Control != frame.ControlBell
	if late {
		f.late++
		f.mark(markLate, Mark{At: s.at, ID: f.shown(w), Height: f.height(w), Record: s.record})
	}
	x = f.ids.put(slot{
		id: w, state: slotMessage, late: late, sent: 1, record: s.record, last: s.record, place: s.place, firstAt: s.at, lastAt: s.at,
		brief: first, ackStart: s.AckStart, ackCount: s.AckCount,
	})
	f.firsts++
	f.dataFirst += s.data
	b := f.series.at(s.at)
	b.Frames++
	b.Data += s.data
	f.points.add(Point{At: s.at, Height: f.height(w), Record: s.record})
	for i := range s.messages {
		m := &s.messages[i]
		if s.inSession && m.Type == frame.TypeServices && m.Count == 0 {
			continue // a list, and no transaction
		}
		if f.tx.message(m, s.record, s.at) && x.endings < 255 {
			x.ending = m.Txn
			x.endings++
		}
		if m.Count == 0 && m.Len > 0 {
			if f.uncounted++; f.firstUncounted == 0 {
				f.firstUncounted = s.record
			}
		}
	}
	f.setInFlight(s.at, f.inFlight+1)
	f.window.sent(s.at, f.inFlight)
	if acked {
		f.ackOne(x, s.at, 0) // where, is not kept of ids that were acknowledged ahead
	}
}

// again takes another copy of a frame.
func (f *flow) again(s *seen, x *slot) {
	sameHeader := s.AckStart == x.ackStart && s.AckCount == x.ackCount
	overtaken := f.ackedSent > x.place && !f.doubled() // at a receiver, what it doubles comes after such acknowledgements too
	patience := shortestTimeout
	if x.late {
		patience = atOnce
	}
	if sameHeader && !overtaken && s.at-x.lastAt < patience {
		f.doubledBy(s, x)
		return
	}
	if sameHeader {
		f.alike++
	}
	f.sentAgain(s, x)
}

// doubledBy takes a copy that the network made.
func (f *flow) doubledBy(s *seen, x *slot) {
	f.duplicates++
	if s.at == x.lastAt {
		f.together++
	}
	f.series.at(s.at).Duplicates++
	f.mark(markDuplicate, Mark{At: s.at, ID: f.shown(x.id), Height: f.height(x.id), Record: s.record})
}

// doubled reports whether most frames so far came twice that no sender sends twice, as in a capture that was taken at two places.
func (f *flow) doubled() bool {
	others, again := f.others, f.othersAgain
	if f.reverse != nil {
		others, again = others+f.reverse.others, again+f.reverse.othersAgain
	}
	return others >= leastOthers && 2*again > others
}

// leastOthers is how many frames show that most come twice. Arbitrary.
const leastOthers = 4

// sentAgain takes a copy that the sender made.
func (f *flow) sentAgain(s *seen, x *slot) {
	f.resent++
	b := f.series.at(s.at)
	b.Resent++
	b.ResentData += s.data
	if f.firstCopy == 0 {
		f.firstCopy = s.record
	}
	if x.sent == 1 {
		f.resentIDs++
	}
	if x.acked && !x.early {
		f.earlyAcks++
		x.early = true
	}
	if x.sent < 1<<16-1 {
		x.sent++
	}
	x.last, x.place, x.lastAt = s.record, s.place, s.at
	x.ackStart, x.ackCount = s.AckStart, s.AckCount
	f.mark(markResent, Mark{At: s.at, ID: f.shown(x.id), Height: f.height(x.id), Record: s.record, Sent: int(x.sent)})
}
