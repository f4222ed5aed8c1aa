package foreign

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// life is what a peer with cumulative acknowledgements has said. One that was reset begins again
// with its ids, and with ours: near the wrap of those it would acknowledge all that came before the
// wrap and that it never had (quirk F5). A frame that left earlier cannot acknowledge more than a
// later one did, so that one of these gives it away; what goes on from there is of the same life,
// even if its ids pass those of ours. After a reset of ours frames of before may come, which is not
// told from that: for as long as the network may hold one back, all is believed.
type life struct {
	known  bool
	began  ack.Instant // with the first frame
	latest frame.Seq   // id of the last frame that was believed
	upTo   frame.Seq   // the first id that it did not acknowledge
	broken bool        // another life speaks
	id     frame.Seq   // of its last frame
	other  frame.Seq   // the first id that this one did not acknowledge
}

// anotherGoesOn is how many frames of another life may be lost in a row. Arbitrary; frames that
// were forged far from there spoil nothing.
const anotherGoesOn = 32

// goesOn reports whether a frame that acknowledges the ids from start to end is of this life, of
// which the newest frame that is believed is given; it may be this one.
func (s *life) goesOn(now ack.Instant, newest, id, start, end frame.Seq) bool {
	if !s.known {
		s.known, s.began, s.latest, s.upTo = true, now, id, end
		return true
	}
	d := id.Diff(s.id)
	switch {
	case s.broken && d > 0 && d <= anotherGoesOn && start.Diff(s.other) >= 0:
		s.id, s.other = id, end
		return false
	case id.Diff(newest) >= 0, id.Diff(s.latest) >= 0, now.Sub(s.began) < heldBack:
		s.latest, s.upTo, s.broken = id, end, false
	case end.Diff(s.upTo) > 0:
		s.broken, s.id, s.other = true, id, end
		return false
	}
	return true
}
