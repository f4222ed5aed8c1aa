package endpoint

import (
	"encoding/binary"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// stamp follows the header of a frame without messages between peers of our
// kind, where the protocol has padding. A held-back acknowledgement must not
// fall on a later use of the ids that it names, be it after a wrap or in the
// receiver's next life: so it says which life of the receiver it speaks to, and
// has its ids whole.
type stamp struct {
	life  uint32   // of the receiver, as the sender knows it
	seq   ack.Wide // the frame's own id
	start ack.Wide // the first id that it acknowledges
}

const stampSize = 12

func (s stamp) put(b []byte) {
	_ = b[stampSize-1]
	binary.LittleEndian.PutUint32(b[0:], s.life)
	binary.LittleEndian.PutUint32(b[4:], uint32(s.seq))
	binary.LittleEndian.PutUint32(b[8:], uint32(s.start))
}

// stampOf returns the stamp of a frame. Not ok: it has none.
func stampOf(f *frame.Frame) (s stamp, ok bool) {
	b := f.Rest()
	if len(b) < stampSize {
		return stamp{}, false
	}
	s = stamp{
		life:  binary.LittleEndian.Uint32(b[0:]),
		seq:   ack.Wide(binary.LittleEndian.Uint32(b[4:])),
		start: ack.Wide(binary.LittleEndian.Uint32(b[8:])),
	}
	return s, s.seq.Seq() == f.Seq && s.start.Seq() == f.AckStart
}

// believable is how far behind the next id an acknowledgement may begin: the
// ids in flight, and a run around the oldest of them.
const believable = ack.MaxHistory + ack.MaxRun

// stamped acts on a frame without messages from a peer of our kind.
func (c *Conn) stamped(now ack.Instant, f *frame.Frame) Reason {
	r := &c.rx
	s, ok := stampOf(f)
	if !ok {
		return c.drop(RefusedNoSession)
	}
	if s.life != r.mine {
		c.missed(now)
		return c.drop(RefusedForeign)
	}
	ours := ack.Wide(c.next.Load())
	r.late.Late(s.seq, ours)
	r.recv.AckOnly(s.seq)
	r.paired = true
	c.heard()
	if f.AckCount == 0 {
		return RefusedNone
	}
	switch age := ours.Diff(s.start); {
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
