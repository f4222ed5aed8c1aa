package foreign

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// proof is whether a peer that acknowledges everything before its ACKStart counts
// from our first id on. An FPGA that was not disabled and enabled goes on from
// where an earlier connection ended (quirk F5): it drops our first ids without a
// word, then takes a later one, and its ACKStart seems to acknowledge all before
// (V2). A fresh one says our first id at least once, as nothing else moves it; until
// then no more than one frame is on its way, so that nothing can be taken by
// a card that is not fresh, and no acknowledgement counts.
//
// If that frame of the card is lost, the connection fails, too: the two cannot be
// told apart.
type proof struct {
	from    frame.Seq
	doubted bool        // then a frame of ours is on its way until the proof is given
	since   ack.Instant // when it spoke of another id first, and we waited for ours
}

// doubtFor is how long the frame that gives the proof may be overtaken by others.
// Arbitrary: long for two links that are taken in turn (quirk F19).
const doubtFor = 100 * time.Millisecond

// look reports whether the proof is given by now.
func (p *proof) look(now ack.Instant, runs []ack.Range, waiting bool) bool {
	for _, run := range runs {
		if run.Start == p.from {
			p.doubted = false
			return true
		}
	}
	if len(runs) > 0 && waiting && !p.doubted {
		p.doubted, p.since = true, now
	}
	return false
}
