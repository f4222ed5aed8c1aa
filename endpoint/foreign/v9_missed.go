package foreign

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// missedAfter is how long an id may be overtaken by later ones before it counts as
// one that never came. It is twice the time after which the second C++ driver sends
// again, if it was told to.
const missedAfter = time.Second

// missing counts the ids of a peer that never sends again which did not come: what
// they carried is lost for good, its transactions stay open, and a link whose
// doorbell was among them stands still (V9). Ids are counted in heaps: those
// before the mark and those after it; the mark moves with time, so that each frame and
// each look costs the same, whatever its id. A third heap are those of which the sender
// does not know yet.
type missing struct {
	begun        bool
	newest       frame.Seq
	shown        frame.Seq // the newest of which the sender knows
	mark         frame.Seq // that one when the mark moved last
	judged       frame.Seq // the mark before: what is missing up to there was told
	older, young int       // ids missing up to the mark, and after it up to shown
	unseen       int       // and after that
	since        ack.Instant
}

// came notes an id that did not come before. Ids begin at 1: of a peer that is heard
// first a little later, the ones before are missing.
func (g *missing) came(now ack.Instant, q frame.Seq) {
	if !g.begun {
		*g = missing{begun: true, newest: q, shown: q, mark: q, judged: q, since: now}
		if isFirst(q) {
			g.mark, g.judged, g.young = 0, 0, int(q)-1
		}
		return
	}
	switch d := q.Diff(g.newest); {
	case d > 0:
		g.unseen += d - 1
		g.newest = q
	case q.Diff(g.judged) <= 0: // too late: it was told
	case q.Diff(g.mark) <= 0:
		g.older = max(g.older-1, 0)
	case q.Diff(g.shown) <= 0:
		g.young = max(g.young-1, 0)
	default:
		g.unseen = max(g.unseen-1, 0)
	}
}

// roll shows what is missing, moves the mark when it is time, and counts what is given
// up.
func (g *missing) roll(now ack.Instant) (missed int) {
	g.young, g.unseen, g.shown = g.young+g.unseen, 0, g.newest
	if now.Sub(g.since) < missedAfter {
		return 0
	}
	missed = g.older
	g.older, g.young = g.young, 0
	g.judged, g.mark, g.since = g.mark, g.newest, now
	return missed
}

// forget takes what was shown to be missing for told.
func (g *missing) forget() {
	g.older, g.young = 0, 0
	g.judged, g.mark = g.shown, g.shown
}

// deadline is what of it the sender knows, which looks when nothing comes any more.
type deadline struct {
	frames int
	at     ack.Instant // when they are given up
	told   bool        // and were; the receiver does not know yet
}

func (g *deadline) armed() bool { return g.frames > 0 }

// expire returns how many frames are given up at this moment.
func (g *deadline) expire(now ack.Instant) (missed int) {
	if g.frames == 0 || now < g.at {
		return 0
	}
	missed, g.frames, g.told = g.frames, 0, true
	return missed
}
