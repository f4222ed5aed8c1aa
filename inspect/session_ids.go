package inspect

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// What an acknowledgement covers is looked through as far as frames earned it, so that the work for a frame has a bound. Both are arbitrary: the
// first is the window of endpoints of our kind.
const (
	earnedLooks = 1024
	mostLooks   = 4 * mostSlots
)

// inOrder takes a data frame, or a bell: its id has 32 bits, and its copy number says which transmission of it this is.
func (f *flow) inOrder(s *seen) {
	w, ok := f.placeInSession(s)
	if !ok {
		return
	}
	first := brief{}
	if len(s.messages) > 0 {
		first = briefOf(&s.messages[0])
	}
	bit := uint8(1) << s.head.Copy
	switch x := f.ids.known(w); {
	case x == nil && !f.ids.fresh(w):
		f.tooOld++
	case x == nil, x.state != slotMessage:
		f.session.unseen += int(s.head.Copy)
		f.firstSight(s, w, first)
		x = f.ids.at(w)
		x.copied, x.opened, x.came = s.head.Copy, s.head.Copy, bit
		if c := &f.session; c.covered && w.Diff(c.upTo) <= 0 && !x.acked {
			f.ackOne(x, s.at, 0)
		}
	case x.brief != first:
		if f.conflicts++; f.firstConflict == 0 {
			f.firstConflict = s.record
		}
	case x.came&bit == 0:
		x.came |= bit
		switch {
		case s.head.Copy > x.copied:
			x.copied = s.head.Copy
		case s.head.Copy < x.opened: // the network delivered a later one first
			f.session.unseen--
			fallthrough
		default:
			x.swapped = true
		}
		f.sentAgain(s, x)
	case s.head.Copy == frame.MostCopies: // that one, and all later ones
		f.again(s, x)
	default:
		f.doubledBy(s, x)
	}
}

// placeInSession finds the place of an id. Not ok: it is a stray one.
func (f *flow) placeInSession(s *seen) (w ack.Wide, ok bool) {
	w = ack.Wide(s.head.ID)
	if x := &f.session; x.fresh {
		x.fresh = false
		before := w - 1 // which is the sender's epoch, if that is known
		if d := w.Diff(ack.Wide(x.now.mine)); x.paired && d > 0 && d < maxJump {
			before = ack.Wide(x.now.mine)
			f.fromFirst = true
		}
		f.begin(before)
		f.coveredBefore(s)
	}
	f.ids.earn()
	switch d := w.Diff(f.ids.newest); {
	case d > 0 && d <= f.ids.jump:
		f.ids.jump -= d
		f.strays.n = 0
		f.advance(w, s)
		return w, true
	case d <= 0 && d > -mostSlots:
		return w, true
	}
	f.tooOld++
	if !f.strays.note(s) {
		return w, false
	}
	f.tooOld-- // s itself
	if f.jumps++; f.firstJump == 0 {
		f.firstJump = s.record
	}
	f.close()
	f.ids.begin(w)
	f.strays.n = 0
	f.tx.settleAll()
	return w, true
}

// covered applies what a frame of the other direction acknowledges: all up to an id, and ranges.
func (f *flow) covered(s *seen, by *flow) {
	if f == nil {
		return
	}
	x := &f.session
	x.looks = min(x.looks+earnedLooks, mostLooks)
	if !x.any || x.fresh || !f.ids.begun || !x.with(&by.session) {
		x.early.upTo, x.early.tag, x.early.is = ack.Wide(s.head.Ack), s.head.Tag, true
		return
	}
	waiting, acked := f.inFlight, f.acked
	upTo := ack.Wide(s.head.Ack)
	if ahead := upTo.Diff(f.ids.newest); ahead < maxJump && ahead > -mostSlots && (!x.covered || upTo.Diff(x.upTo) > 0) {
		from := f.ids.newest + 1 - ack.Wide(len(f.ids.slots))
		if x.covered && x.upTo.Diff(from) >= 0 {
			from = x.upTo + 1
		} else if f.ids.oldest.Diff(from) > 0 {
			from = f.ids.oldest
		}
		if n := upTo.Diff(from) + 1; n <= x.looks {
			x.looks -= max(n, 0)
			f.ackRun(from, upTo, s)
			x.covered, x.upTo = true, upTo
		}
	}
	if said, ok := s.session.SessionAck(); ok {
		for i := range said.Ranges.Len() {
			r := said.Ranges.At(i)
			first := ack.Wide(r.First)
			last := first + ack.Wide(r.Count-1)
			if oldest := f.ids.newest + 1 - ack.Wide(len(f.ids.slots)); first.Diff(oldest) < 0 {
				first = oldest
			}
			if ahead := last.Diff(f.ids.newest); ahead >= maxJump {
				last = f.ids.newest + maxJump - 1
			}
			n := last.Diff(first) + 1
			if n <= 0 || n > x.looks {
				continue // it comes again, with the next acknowledgement
			}
			x.looks -= n
			f.ackRun(first, last, s)
		}
		f.echoed(s, &said)
	}
	if f.inFlight < waiting {
		f.window.acknowledged(s.at, waiting)
	}
	if f.acked > acked {
		f.ackPoints.add(Point{At: s.at, Height: f.height(f.newestAcked), Record: s.record})
	}
}

// coveredBefore applies what the other end acknowledged before the first frame of a session in the capture: it begins after some, or has records of
// both directions in another order.
func (f *flow) coveredBefore(s *seen) {
	x := &f.session
	if !x.early.is || f.reverse == nil || f.reverse.session.tag != x.early.tag || !x.paired || x.now.turned().tag() != x.early.tag {
		return
	}
	x.early.is = false
	n := x.early.upTo.Diff(f.ids.newest)
	if n <= 0 || n >= maxJump || n > x.looks {
		return
	}
	x.looks -= n
	f.ackRun(f.ids.newest+1, x.early.upTo, s)
}

// ackRun notes that ids are acknowledged.
func (f *flow) ackRun(from, to ack.Wide, s *seen) {
	for w := from; w.Diff(to) <= 0; w++ {
		f.ids.looked++
		if w.Diff(f.ids.newest) > 0 {
			f.ids.ackAhead(w)
			continue
		}
		x := f.ids.known(w)
		if x == nil {
			continue
		}
		f.ackedSent = max(f.ackedSent, x.place)
		if !x.acked {
			f.ackOne(x, s.at, s.record)
			f.took(x)
		}
		if !f.anyAcked || w.Diff(f.newestAcked) > 0 {
			f.newestAcked, f.anyAcked = w, true
		}
	}
}

// echoed takes what an ACK says of the frame that arrived last: how long it was under way and back, and whether an earlier transmission of it
// had arrived.
func (f *flow) echoed(s *seen, said *frame.SessionAck) {
	x := f.ids.known(ack.Wide(s.head.ID))
	if x == nil || x.state != slotMessage || said.Copy > x.copied {
		return
	}
	bit := uint8(1) << said.Copy
	if x.echoed&bit != 0 {
		return // told before, or the network doubled it
	}
	switch {
	case said.Again && said.Copy > 0:
		f.session.vain++
	case !said.Again && said.Copy > 0 && x.echoed == 0:
		f.session.lost += int(said.Copy)
	}
	x.echoed |= bit
	sent := x.lastAt
	if said.Copy == 0 {
		sent = x.firstAt
	}
	if !x.swapped && said.Delay < frame.LongestDelay && (said.Copy == x.copied && said.Copy < frame.MostCopies || said.Copy == 0 && int(x.sent) == int(x.copied)+1) {
		f.session.trips.add(max(0, s.at-sent-time.Duration(said.Delay)*time.Microsecond))
	}
}
