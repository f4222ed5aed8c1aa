package inspect

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// shortestTimeout is less than any sender waits before it repeats a frame
// without having heard of later ones. Ours wait 5 ms, the others 200 ms.
const shortestTimeout = 2 * time.Millisecond

// atOnce is how soon after a frame that came late its copy must come to be a
// duplicate made by the network: the sender had a reason already.
const atOnce = 20 * time.Microsecond

// message takes a frame with messages.
func (f *flow) message(s *seen) {
	w, ok := f.place(s)
	if !ok {
		return
	}
	mark := print(&s.messages[0])
	x := f.ids.known(w)
	switch {
	case x == nil && !f.ids.fresh(w):
		f.tooOld++
	case x == nil, x.state == slotMissing, x.state == slotOther:
		f.firstSight(s, w, mark)
	case x.print != mark:
		f.conflict(s, mark)
	default:
		f.again(s, x)
	}
}

// conflict takes a frame that has the id of another one.
func (f *flow) conflict(s *seen, mark uint32) {
	f.conflicts++
	if f.firstConflict == 0 {
		f.firstConflict = s.record
	}
	if low := s.Seq <= 8 && s.messages[0].Txn <= 8; low || f.strays.note(s.Seq, s.record, s.at) {
		f.conflicts = max(f.conflicts-max(f.strays.n, 1), 0)
		f.restart(s, 0, "ids began anew, with other content")
		f.firstSight(s, f.ids.newest, mark)
	}
}

// firstSight takes a frame that was not seen before.
func (f *flow) firstSight(s *seen, w ack.Wide, mark uint32) {
	x := f.ids.at(w)
	acked := x.state == slotMissing && x.acked && x.id == w
	late := w != f.ids.newest
	if late {
		f.late++
		f.mark(markLate, Mark{At: s.at, ID: w.Seq(), Height: f.height(w), Record: s.record})
	}
	*x = slot{
		id: w, state: slotMessage, late: late, sent: 1, record: s.record, last: s.record, firstAt: s.at, lastAt: s.at,
		print: mark, ackStart: s.AckStart, ackCount: s.AckCount,
	}
	f.firsts++
	f.dataFirst += s.data
	b := f.series.at(s.at)
	b.Frames++
	b.Data += s.data
	f.points.add(Point{At: s.at, Height: f.height(w), Record: s.record})
	for i := range s.messages {
		if m := &s.messages[i]; f.tx.message(m, s.record, s.at) && x.endings < 255 {
			x.ending = m.Txn
			x.endings++
		}
	}
	f.setInFlight(s.at, f.inFlight+1)
	switch {
	case f.inFlight > f.inFlightMost:
		f.inFlightMost, f.atMost = f.inFlight, 1
	case f.inFlight == f.inFlightMost:
		f.atMost++
	}
	if acked {
		f.ackOne(x, s.at, s.record)
	}
}

// again takes another copy of a frame.
func (f *flow) again(s *seen, x *slot) {
	b := f.series.at(s.at)
	sameHeader := s.AckStart == x.ackStart && s.AckCount == x.ackCount
	overtaken := f.ackedSent > x.last
	patience := shortestTimeout
	if x.late {
		patience = atOnce
	}
	if sameHeader && !overtaken && s.at-x.lastAt < patience {
		f.duplicates++
		b.Duplicates++
		f.mark(markDuplicate, Mark{At: s.at, ID: x.id.Seq(), Height: f.height(x.id), Record: s.record})
		return
	}
	f.resent++
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
	x.last, x.lastAt = s.record, s.at
	x.ackStart, x.ackCount = s.AckStart, s.AckCount
	f.mark(markResent, Mark{At: s.at, ID: x.id.Seq(), Height: f.height(x.id), Record: s.record, Sent: int(x.sent)})
}
