package inspect

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// acknowledged applies what a frame of the other direction acknowledges.
func (f *flow) acknowledged(s *seen) {
	if f == nil || s.AckCount == 0 || !f.ids.begun {
		return
	}
	start := f.ids.newest.Near(s.AckStart)
	any, waiting := false, f.inFlight
	for i := range int(s.AckCount) {
		w := start + ack.Wide(i)
		if ahead := w.Diff(f.ids.newest); ahead > 0 {
			if ahead < maxJump {
				f.ids.ackAhead(w)
			} else if f.nRestart+f.jumps > 0 {
				f.acksStale++
			}
			continue
		}
		x := f.ids.known(w)
		if x == nil {
			if f.acksOld++; f.nRestart+f.jumps > 0 { // most likely it is for what was sent before that
				f.acksStale++
			}
			continue
		}
		any = true
		f.ackedSent = max(f.ackedSent, x.place)
		if !x.acked {
			f.ackOne(x, s.at, s.record)
			f.took(x)
		}
		if !f.anyAcked || w.Diff(f.newestAcked) > 0 {
			f.newestAcked, f.anyAcked = w, true
		}
	}
	if f.inFlight < waiting {
		f.window.acknowledged(s.at, waiting)
	}
	if any {
		f.ackPoints.add(Point{At: s.at, Height: f.height(f.newestAcked), Record: s.record})
	}
}

// ackOne notes the first acknowledgement of an id.
func (f *flow) ackOne(x *slot, at time.Duration, record int) {
	x.acked, x.ackedAt, x.ackIn = true, at, record
	if x.state != slotMessage {
		return
	}
	f.acked++
	f.setInFlight(at, f.inFlight-1)
	f.tx.acknowledged(x.ending, int(x.endings), at)
}

// took notes how long the acknowledgement of a frame took, which came first.
func (f *flow) took(x *slot) {
	switch {
	case x.state != slotMessage:
	case x.sent == 1:
		f.once.add(x.ackedAt - x.firstAt)
	default:
		f.repeated.add(x.ackedAt - x.firstAt)
	}
}

// grace is how long after a frame its acknowledgement may come, for the frames
// at the end of a capture. OpenCPI's first driver takes up to 90 ms.
func (f *flow) grace() time.Duration {
	return max(250*time.Millisecond, 4*f.once.quantile(0.99))
}

// finish draws the conclusions of what is still open when the capture ends.
func (f *flow) finish(end time.Duration) {
	grace := f.grace()
	for s := range f.ids.inOrder() {
		switch {
		case s.state == slotMissing && end-s.firstAt <= grace && !s.acked:
			f.gaps++ // it may only be late
		case s.state == slotMissing:
			f.evict(s)
		case s.state == slotMessage && !s.acked && end-s.firstAt <= grace:
			f.pending++
		case s.state == slotMessage && !s.acked:
			f.neverAcked(s)
		}
		if s.state == slotMessage && s.sent > 1 {
			f.worst.add(*s)
		}
	}
	f.missingAcked += f.ids.aheadN
	f.missing += f.ids.aheadN
	f.explain()
	for t := f.tx.open.first; t != nil; {
		next := t.next
		if end-t.End <= grace {
			f.tx.underWay++
			f.tx.open.remove(t)
			f.tx.show(t)
		}
		t = next
	}
	f.tx.settleAll()
}
