package tcp

import (
	"time"

	"github.com/dgrdma/dgrdma/capture"
)

// follow counts segments in a row of which each begins where its direction was, and has heard nothing but what was captured. Where
// many do, the capture is in order, and does not have what was before them.
func (c *Connection) follow(w Way, s *capture.Segment, p *piece) {
	h, o := &c.Halves[w], &c.Halves[1-w]
	end := p.end()
	if s.Flags&capture.FIN != 0 {
		end++
	}
	ahead, more := int32(p.seq-h.seenTo), int32(end-h.seenTo)
	heard := s.Flags&capture.ACK != 0
	switch {
	case heard && o.seen && int32(s.Ack-o.seenTo) > 0, heard && o.acked && int32(s.Ack-o.ackedTo) < 0,
		h.seen && ahead > 0, len(h.pieces) > 0 && int32(p.seq-h.pieces[0].seq) < 0:
		c.inARow = 0
	case !h.seen, ahead == 0 && more > 0, heard && o.acked && s.Ack != o.ackedTo:
		c.inARow++
	}
	if !h.seen || more > 0 {
		h.seen, h.seenTo = true, end
	}
}

// decideOld waits no longer for the beginning of connections of which the first segment was captured long ago.
func (t *Connections) decideOld(now time.Time) {
	for e := t.undecided.Front(); e != nil; e = t.undecided.Front() {
		c := e.Value.(*Connection)
		if now.IsZero() || !c.First.Time.IsZero() && now.Sub(c.First.Time) < PatientFor {
			return
		}
		if c.First.Time.IsZero() {
			t.decidedOn(c) // by its segments alone
			continue
		}
		c.decided = true
		t.begin(c)
		t.settle(c)
	}
}

// decidedOn has no decision pending any more.
func (t *Connections) decidedOn(c *Connection) {
	if c.waits != nil {
		t.undecided.Remove(c.waits)
		c.waits = nil
	}
}
