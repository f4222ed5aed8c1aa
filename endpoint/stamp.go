package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// believable is how far behind the next id an acknowledgement may begin: the
// ids in flight, and a run around the oldest of them.
const believable = ack.MaxHistory + ack.MaxRun

// stamped acts on a frame without messages from a peer of our kind. One that the
// network held back must not fall on a later use of the ids that it names, be it
// after a wrap or in the receiver's next life: so its stamp says which life of
// the receiver it speaks to, and has its ids whole.
func (c *Conn) stamped(now ack.Instant, f *frame.Frame) Reason {
	r := &c.rx
	s, ok := f.Stamp()
	if !ok {
		return c.drop(RefusedNoSession)
	}
	if s.Life != r.mine {
		c.missed(now)
		return c.drop(RefusedForeign)
	}
	ours := ack.Wide(c.next.Load())
	r.late.Late(ack.Wide(s.ID), ours)
	r.recv.AckOnly(ack.Wide(s.ID))
	r.paired = true
	c.heard()
	if f.AckCount == 0 {
		return RefusedNone
	}
	switch age := ours.Diff(ack.Wide(s.Start)); {
	case age < int(f.AckCount):
		c.missed(now) // it may have lost count of our ids
		return c.drop(RefusedAckOfUnsent)
	case age > believable:
		c.missed(now)
		return c.drop(RefusedAckTooOld)
	}
	r.acks = append(r.acks, ack.Range{Start: f.AckStart, Count: f.AckCount})
	return RefusedNone
}
