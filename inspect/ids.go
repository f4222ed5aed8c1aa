package inspect

import (
	"iter"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// How many ids are remembered per flow, and of all flows together beyond the
// least that each may have.
const (
	leastSlots  = 1024 // the window of endpoints of our kind
	mostSlots   = ack.MaxHistory
	slotsBudget = 16 * mostSlots
)

// maxJump is the longest run of ids that may be missing before a frame is only
// believed in company: it may be a stray one. Of a flow whose ids leap again and again it is shorter: each frame adds earnedJump to what
// leaps may pass over, so that the work for a frame has a bound.
const (
	maxJump    = 4096
	earnedJump = 128 // arbitrary: more than offload joins in a record
)

type slotState uint8

const (
	slotEmpty   slotState = iota // from before the first frame
	slotMissing                  // passed over
	slotHidden                   // likewise, and behind the snap length
	slotMessage                  // a frame with messages
	slotOther                    // acknowledgements alone
)

// slot is what is known of one frame id.
type slot struct {
	id    ack.Wide
	state slotState
	acked bool
	late  bool // came after later ones
	early bool // a copy left after the first acknowledgement was captured
	given bool // up, when its sender began anew
	// endings is how many transactions had their last message here, up to
	// ending.
	endings  uint8
	ackCount uint8 // of the header, which a network's duplicate repeats
	ackStart frame.Seq
	sent     uint16 // times, without duplicates
	copied   uint8  // in a session: the highest copy number
	opened   uint8  // likewise: that of the copy that the capture has first
	came     uint8  // likewise: which copy numbers it has, a bit for each
	swapped  bool   // a copy came after a later one, so that times are of others
	echoed   uint8  // likewise: which copy numbers acknowledgements named, a bit for each
	ackIn    int    // record of the first acknowledgement
	ackedAt  time.Duration
	ending   uint32
	brief    brief
	record   int // of the first copy; of a missing one, what came in its place
	last     int // of the last copy
	place    int // of the last copy among all frames of the capture, which offload joins in records
	firstAt  time.Duration
	lastAt   time.Duration
}

// ids are the last ids of a flow, and what became of them.
type ids struct {
	slots  []slot
	oldest ack.Wide // that may have a slot
	first  ack.Wide // of this numbering
	newest ack.Wide
	begun  bool
	jump   int                     // how many ids may be passed over
	looked int                     // slots that were looked at by walks over several, which tests compare with the frames
	ahead  *[mostSlots / 64]uint64 // acknowledged ids that were not seen yet, by id
	aheadN int
}

func (x *ids) at(w ack.Wide) *slot { return &x.slots[int(w)&(len(x.slots)-1)] }

// known returns the slot of an id, or nil if it is not remembered.
func (x *ids) known(w ack.Wide) *slot {
	if !x.begun {
		return nil
	}
	s := x.at(w)
	if s.state == slotEmpty || s.id != w {
		return nil
	}
	return s
}

// inOrder yields the slots of the numbering, those of earlier ids first.
func (x *ids) inOrder() iter.Seq[*slot] {
	return func(yield func(*slot) bool) {
		if !x.begun {
			return
		}
		from := x.newest + 1 - ack.Wide(len(x.slots))
		if x.oldest.Diff(from) > 0 {
			from = x.oldest
		}
		for w := from; w != x.newest+1; w++ {
			x.looked++
			if !yield(x.at(w)) {
				return
			}
		}
	}
}

// fresh reports whether an id is one from before the first frame of the capture,
// that no frame has had yet.
func (x *ids) fresh(w ack.Wide) bool {
	return w.Diff(x.first) <= 0 && x.newest.Diff(w) < leastSlots && x.at(w).state == slotEmpty
}

// earn notes a frame.
func (x *ids) earn() { x.jump = min(x.jump+earnedJump, maxJump) }

// put sets what is known of an id in the window.
func (x *ids) put(s slot) *slot {
	if s.id.Diff(x.oldest) < 0 {
		x.oldest = s.id
	}
	p := x.at(s.id)
	*p = s
	return p
}

// begin begins a numbering. All slots of the one before were given up.
func (x *ids) begin(w ack.Wide) {
	if x.slots == nil {
		x.slots, x.jump = make([]slot, leastSlots), maxJump
	}
	if x.aheadN > 0 {
		*x.ahead, x.aheadN = [mostSlots / 64]uint64{}, 0
	}
	x.oldest, x.first, x.newest, x.begun = w, w, w, true
}

// grow doubles the window.
func (x *ids) grow() {
	old := x.slots
	x.slots = make([]slot, 2*len(old))
	for i := range old {
		if old[i].state != slotEmpty {
			*x.at(old[i].id) = old[i]
		}
	}
}

// ackAhead notes the acknowledgement of an id that no frame has had yet.
func (x *ids) ackAhead(w ack.Wide) {
	if x.ahead == nil {
		x.ahead = new([mostSlots / 64]uint64)
	}
	i := int(w) & (mostSlots - 1)
	if x.ahead[i/64]&(1<<(i%64)) == 0 {
		x.ahead[i/64] |= 1 << (i % 64)
		x.aheadN++
	}
}

// takeAhead reports whether an id that comes into the window was acknowledged
// before, and forgets that.
func (x *ids) takeAhead(w ack.Wide) bool {
	if x.aheadN == 0 {
		return false
	}
	i := int(w) & (mostSlots - 1)
	if x.ahead[i/64]&(1<<(i%64)) == 0 {
		return false
	}
	x.ahead[i/64] &^= 1 << (i % 64)
	x.aheadN--
	return true
}

// stray are frames that do not fit the numbering. Three in a row that follow
// each other make a new one.
type stray struct {
	seq    frame.Seq
	n      int
	data   int       // among them, those with messages
	from   frame.Seq // of the first
	record int
	at     time.Duration
}

// straysBelieved is how many frames in a row make a numbering. One may have been
// held back by the network, or be wrong; more than two hardly ever follow each
// other.
const straysBelieved = 3

// note takes a frame out of place and reports whether it and those before it
// make a numbering of their own.
func (s *stray) note(f *seen) bool { return s.noteRun(f, 64, straysBelieved) }

// noteRun is note for a run of so many frames, each of which is at most so far from the one before.
func (s *stray) noteRun(f *seen, apart, believed int) bool {
	if d := f.Seq.Diff(s.seq); s.n == 0 || d < 1 || d > apart {
		*s = stray{from: f.Seq, record: f.record, at: f.at}
	}
	s.seq = f.Seq
	s.n++
	if len(f.messages) > 0 {
		s.data++
	}
	return s.n >= believed
}
