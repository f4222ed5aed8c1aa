package ack

import "github.com/dgrdma/dgrdma/frame"

// Range is a run of acknowledged frame ids, across the wrap if need be.
type Range struct {
	Start frame.Seq
	Count uint8
}

// MaxRun is the longest run one frame can acknowledge.
const MaxRun = 255

// MaxHistory is the widest duplicate window. A quarter of the id space leaves
// room on both sides: ids up to half the space ahead are told from old ones.
const MaxHistory = 1 << 14

// MaxWindow is how many frames can wait for acknowledgement: none of them falls behind the
// peer's history when later ones arrive first.
const MaxWindow = MaxHistory - 1

// Verdict is what a frame id says about its frame.
type Verdict uint8

const (
	New       Verdict = iota // not received so far
	Duplicate                // received, and still in the history
	Old                      // behind the history (DGRDMA-034)
	Far                      // too far ahead to be believed of one frame
)

func (v Verdict) String() string {
	return [...]string{"new", "duplicate", "old", "far"}[v]
}

// ReceiverConfig says how the peer's ids are to be taken and acknowledged.
type ReceiverConfig struct {
	// History is how many ids back duplicates are known: a power of two, at
	// most MaxHistory.
	History int
	// Ahead is how many ids after the newest one a frame may have by itself. What is
	// further away needs a second witness: the ids of a peer go that far unseen
	// only if very much was lost, and one forged frame would make all old that
	// the peer sends next. 0: any distance is believed.
	Ahead int
	// Repeat extends every acknowledged run over its received neighbours, so
	// that each id is acknowledged several times and a lost acknowledgement
	// costs no retransmission.
	Repeat bool
	// SplitAtWrap ends runs at id 65535 (quirk L3).
	SplitAtWrap bool
}

// Receiver is the duplicate filter of one peer's frames and the list of what
// is to be acknowledged. It belongs to the goroutine that receives.
//
// Every received id is remembered together with a tag, by which the owner can
// recognise the frame that carried it: ids alone repeat after 65536 frames.
type Receiver struct {
	cfg    ReceiverConfig
	got    bits     // ids that came with messages
	alone  bits     // ids that came without, at some time
	tags   []uint16 // by id modulo History; like the others made at the first frame
	newest frame.Seq
	next   frame.Seq // the id that follows if nothing was lost
	active bool
	far    frame.Seq // seen last of those too far ahead, since newest moved
	isFar  bool
	due    []Range // accepted, in the order of arrival
	again  []Range // come again
	gap    bool    // due holds ids behind a gap
	fresh  int
}

// Init prepares r for a peer of whom nothing was received.
func (r *Receiver) Init(cfg ReceiverConfig) {
	if cfg.History <= 0 || cfg.History > MaxHistory || cfg.History&(cfg.History-1) != 0 {
		panic("BUG: duplicate history is not a power of two up to 16384")
	}
	*r = Receiver{cfg: cfg}
}

// Reset forgets everything that was received.
func (r *Receiver) Reset() {
	clear(r.got)
	clear(r.alone)
	*r = Receiver{cfg: r.cfg, got: r.got, alone: r.alone, tags: r.tags, due: r.due[:0], again: r.again[:0]}
}

// known reports whether s lies in the history.
func (r *Receiver) known(s frame.Seq) bool {
	d := s.Diff(r.newest)
	return r.active && d <= 0 && d > -r.cfg.History
}

func (r *Receiver) received(s frame.Seq) bool { return r.known(s) && r.got.has(s, r.cfg.History) }

// Check judges an id without side effect.
func (r *Receiver) Check(s frame.Seq) Verdict {
	if !r.active {
		return New
	}
	d := s.Diff(r.newest)
	switch {
	case d > 0:
		if r.tooFar(s, d) {
			return Far
		}
		return New
	case d <= -r.cfg.History:
		return Old
	case r.got.has(s, r.cfg.History):
		return Duplicate
	}
	return New
}

// tooFar reports whether s, which is d after the newest id, needs a witness and has
// none.
func (r *Receiver) tooFar(s frame.Seq, d int) bool {
	if r.cfg.Ahead == 0 || d <= r.cfg.Ahead {
		return false
	}
	apart := s.Diff(r.far)
	return !r.isFar || apart > r.cfg.Ahead || apart < -r.cfg.Ahead
}

// Sight takes notice of a frame that is too far ahead, and was not accepted: it
// is the witness for another one near it, or for itself when it comes again,
// unless the peer goes on where it was.
func (r *Receiver) Sight(s frame.Seq) { r.far, r.isFar = s, true }

// Carried reports whether s was received in a frame with that tag.
func (r *Receiver) Carried(s frame.Seq, tag uint16) bool {
	return r.received(s) && r.tags[int(s)&(r.cfg.History-1)] == tag
}

// Accept marks s, which Check says to be new, as received, after the messages of its frame were placed
// (DGRDMA-036).
func (r *Receiver) Accept(s frame.Seq, tag uint16) {
	r.move(s)
	r.got.add(s, r.cfg.History)
	r.tags[int(s)&(r.cfg.History-1)] = tag
	if s.Diff(r.next) > 0 {
		r.gap = true
	}
	r.follow(s)
	r.fresh++
	r.note(&r.due, s)
}

// AcceptRun is Accept for each of the ids that follow the newest one, with these tags. What
// was received up to that one is known, so none of them is.
func (r *Receiver) AcceptRun(tags []uint16) {
	n := len(tags)
	if n == 0 {
		return
	}
	first := r.newest.Add(1)
	r.newest, r.isFar = r.newest.Add(n), false
	r.alone.removeRun(first, n, r.cfg.History)
	r.got.addRun(first, n, r.cfg.History)
	for i, tag := range tags {
		r.tags[(int(first)+i)&(r.cfg.History-1)] = tag
	}
	r.next = r.newest.Add(1)
	r.fresh += n
	for s := first; n > 0; {
		k := min(n, MaxRun, 1<<16-int(s)) // behind the last id joins may see another run
		if last := len(r.due) - 1; last >= 0 && r.join(r.due[last], Range{s, 1}) {
			k = min(k, MaxRun-int(r.due[last].Count))
			r.due[last].Count += uint8(k)
		} else {
			r.due = append(r.due, Range{s, uint8(k)})
		}
		s, n = s.Add(k), n-k
	}
}

// AckOnly takes notice of a frame without messages: its id is no gap. It is
// never acknowledged (DGRDMA-024, quirk F14), and a later frame with messages
// under the same id is new.
func (r *Receiver) AckOnly(s frame.Seq) {
	switch d := s.Diff(r.newest); {
	case r.active && r.tooFar(s, d):
		r.Sight(s)
	case d > 0 && r.active:
		r.move(s)
		r.alone.add(s, r.cfg.History)
		r.follow(s)
	case d > 0:
		r.newest = s
	case r.active && d > -r.cfg.History:
		r.alone.add(s, r.cfg.History) // it was overtaken
	}
}

// move makes s the newest id if it is newer.
func (r *Receiver) move(s frame.Seq) {
	if !r.active {
		if r.tags == nil {
			r.got, r.alone, r.tags = newBits(r.cfg.History), newBits(r.cfg.History), make([]uint16, r.cfg.History)
		}
		r.active = true
		r.newest, r.next = s, s
	}
	switch d := s.Diff(r.newest); {
	case d <= 0:
		return
	case d == 1: // mostly
		r.got.remove(s, r.cfg.History)
		r.alone.remove(s, r.cfg.History)
	default:
		r.got.removeRun(r.newest.Add(1), d, r.cfg.History)
		r.alone.removeRun(r.newest.Add(1), d, r.cfg.History)
	}
	r.newest, r.isFar = s, false
}

func (r *Receiver) follow(s frame.Seq) {
	if s.Diff(r.next) >= 0 {
		r.next = s.Add(1)
	}
}

// Again makes a received id due once more, at once (DGRDMA-028).
func (r *Receiver) Again(s frame.Seq) { r.note(&r.again, s) }

// note adds an id to runs, of which it mostly makes the last one longer.
func (r *Receiver) note(runs *[]Range, s frame.Seq) {
	if n := len(*runs); n > 0 {
		if last := &(*runs)[n-1]; r.join(*last, Range{s, 1}) {
			last.Count++
			return
		}
	}
	*runs = append(*runs, Range{s, 1})
}

// Newest returns the newest id received, or before that, where the ids go on.
func (r *Receiver) Newest() frame.Seq { return r.newest }

// DropPending forgets what is due, for peers that want no acknowledgements.
func (r *Receiver) DropPending() {
	r.due, r.again = r.due[:0], r.again[:0]
	r.fresh, r.gap = 0, false
}

// extend makes a run longer, if all its ids may be repeated.
func (r *Receiver) extend(d Range) Range {
	if !r.cfg.Repeat || !r.known(d.Start) {
		return d
	}
	behind, before := r.newest.Diff(d.Start)+1, r.cfg.History-1+d.Start.Diff(r.newest)
	if r.cfg.SplitAtWrap {
		behind, before = min(behind, 1<<16-int(d.Start)), min(before, int(d.Start))
	}
	count := int(d.Count)
	if last := d.Start.Add(count); count < behind {
		count += r.got.run(last, min(behind, MaxRun)-count, r.cfg.History)
	}
	more := r.got.runBefore(d.Start, min(before, MaxRun-count), r.cfg.History)
	return Range{d.Start.Add(-more), uint8(count + more)}
}

// joins reports whether s may be in one run with the id before it.
func (r *Receiver) joins(s frame.Seq) bool { return s != 0 || !r.cfg.SplitAtWrap }
