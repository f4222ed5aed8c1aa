package inspect

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// height is an id as pictures have it: it grows over the wrap, and goes on when
// the sender begins anew.
func (f *flow) height(w ack.Wide) int64 { return f.raised + int64(w.Diff(f.base)) }

// shown is an id as it is told: in 16 bits, but in sessions.
func (f *flow) shown(w ack.Wide) uint32 {
	if f.session.any {
		return uint32(w)
	}
	return uint32(w.Seq())
}

// begin begins a numbering.
func (f *flow) begin(w ack.Wide) {
	if f.ids.begun {
		f.raised = f.height(f.ids.newest) + 1
	}
	f.base = w
	f.ids.begin(w)
}

// firstWide is where a numbering begins of which only 16 bits are known. What came
// before the first frame of the capture has ids too.
func firstWide(s frame.Seq) ack.Wide { return 1<<16 | ack.Wide(s) }

// place finds the id of a frame in 32 bits. Not ok: it is a stray one.
func (f *flow) place(s *seen) (w ack.Wide, ok bool) {
	if !f.ids.begun {
		f.begin(firstWide(s.Seq))
		return f.ids.newest, true
	}
	f.ids.earn()
	w = f.ids.newest.Near(s.Seq)
	switch d := w.Diff(f.ids.newest); {
	case d > 0 && d <= f.ids.jump:
		f.ids.jump -= d
		f.strays.n = 0
		f.advance(w, s)
		return w, true
	case d <= 0 && d > -mostSlots:
		return w, true
	}
	if f.anew(s) {
		f.restart(s, "ids began anew")
	} else if f.strays.note(s) {
		f.tooOld -= straysBelieved - 1
		f.leap(s)
	} else {
		f.tooOld++
		return w, false
	}
	return f.ids.newest, true
}

// anew reports whether a frame looks like the first ones that OpenCPI's
// implementations send.
func (f *flow) anew(s *seen) bool {
	return len(s.messages) > 0 && firstOfLife(s) && f.tx.any && f.tx.firstID+8 < f.tx.newest
}

// leap begins a numbering that several frames agree on. If transactions go on,
// the capture lost a long piece; else the sender restarted.
func (f *flow) leap(s *seen) {
	f.believed(s)
	if len(s.messages) > 0 && f.tx.any && int32(s.messages[0].Txn-f.tx.newest) < 0 {
		f.restart(s, "ids and transactions began anew")
		return
	}
	if f.jumps++; f.firstJump == 0 {
		f.firstJump = s.record
	}
	n := int(s.Seq - f.ids.newest.Seq()) // in 16 bits, the way forward: how many rounds of them passed is not known
	f.close()
	f.ids.begin(f.ids.newest + ack.Wide(n)) // the numbering is the same, unless the sender restarted
	f.beginsBehind(s)
	f.strays.n = 0
}

// believed counts frames that were strays until s followed them.
func (f *flow) believed(s *seen) {
	before := f.strays.data
	if len(s.messages) > 0 {
		before-- // s itself is counted when its place is known
	}
	f.firsts += max(0, before)
	f.abandoned += max(0, before) // what became of them was not followed
}

// beginsBehind notes that a numbering, which s is the newest frame of, begins with the strays that it followed: these are none from before
// the first frame.
func (f *flow) beginsBehind(s *seen) {
	if f.strays.n > 0 {
		f.ids.first -= ack.Wide(s.Seq.Diff(f.strays.from) + 1)
		f.ids.put(slot{id: f.ids.newest, state: slotMissing, record: s.record, firstAt: s.at})
	}
}

// restart begins another life of the sender.
func (f *flow) restart(s *seen, how string) {
	f.nRestart++
	if len(f.restarts) < mostRestart {
		f.restarts = append(f.restarts, Restart{Record: s.record, At: s.at, Silent: max(0, s.at-f.spoke), How: how})
	}
	f.mark(markRestart, Mark{At: s.at, ID: f.shown(f.ids.newest), Height: f.height(f.ids.newest), Record: s.record})
	if g := f.a.reverse(f.key); g != nil {
		g.peerEnded = s.record
	}
	f.close()
	f.tx.settleAll()
	f.begin(firstWide(s.Seq))
	if s.Seq == f.strays.seq && f.strays.n > 1 {
		f.beginsBehind(s)
	}
	f.strays.n = 0
	f.anyAcked = false
}

// lost reports whether a frame that was never acknowledged was sent to a life of the receiver that ended.
func (f *flow) lost(s *slot) bool { return s.record < f.peerEnded }

// close gives up all ids that are remembered, as their sender has.
func (f *flow) close() {
	for s := range f.ids.inOrder() {
		if s.state == slotMessage && !s.acked {
			f.abandoned++
			s.acked, s.given = true, true
		}
		f.evict(s)
	}
	f.setInFlight(f.last, 0)
}

// advance makes room for ids up to w.
func (f *flow) advance(w ack.Wide, by *seen) {
	x := &f.ids
	for x.newest != w {
		x.newest++
		x.looked++
		s := x.at(x.newest)
		if s.state == slotMissing || s.state == slotMessage && !s.acked {
			if f.a.moreSlots(f) {
				x.grow()
				s = x.at(x.newest)
			}
		}
		f.evict(s)
		*s = slot{id: x.newest, state: slotMissing, record: by.record, firstAt: by.at}
		if x.takeAhead(x.newest) {
			s.acked, s.ackedAt = true, by.at
		}
	}
}

// evict draws the conclusions of what is known of an id.
func (f *flow) evict(s *slot) {
	switch {
	case s.state == slotMissing:
		f.missing++
		f.mark(markGap, Mark{At: s.firstAt, ID: f.shown(s.id), Height: f.height(s.id), Record: s.record})
		f.gaps++
		first := &f.firstMissing
		if s.acked {
			f.missingAcked++
			first = &f.firstMissingAcked
		}
		if first.record == 0 {
			*first = *s
		}
	case s.state == slotMessage && !s.acked:
		f.inFlight--
		f.neverAcked(s)
	}
	if s.state == slotMessage && s.sent > 1 {
		f.worst.add(*s)
	}
	*s = slot{}
}

func (f *flow) neverAcked(s *slot) {
	f.unacked++
	if f.lost(s) {
		if f.toEnded++; f.toEnded == 1 {
			f.firstToEnded = *s
		}
		return
	}
	if f.firstUnacked.record == 0 {
		f.firstUnacked = *s
	}
}
