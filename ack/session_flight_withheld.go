package ack

const (
	// withholdFrom is how many frames are in flight at least when an id is withheld: fewer harm nobody. Arbitrary.
	withholdFrom = 16
	// withholdFirst is how many ids at most are used before the first one is withheld, and withholdChance how many more than withholdRounds times
	// what is in flight before another one is. Arbitrary: a peer that lies is found within some round trips, and for some thousand frames one more is sent.
	withholdFirst  = 64
	withholdChance = 1024
	withholdRounds = 8
)

// withheld is an id that is used late. A peer that acknowledges frames before they came has them sent faster than the path carries them, at the
// cost of all others (RFC 9000 section 21.4). It cannot know which id has not left.
//
// The next frame gets the id after the withheld one. When the peer acknowledges a later id, a frame without messages leaves under the withheld
// one: no data waits for it.
type withheld struct {
	id     uint32
	has    bool
	leaves bool   // a later frame is acknowledged, or a timeout passed
	lied   bool   // the peer acknowledged it
	after  uint32 // ids that are used before the next one is withheld
}

func (w *withheld) is(id uint32) bool { return w.has && w.id == id }

func (w *withheld) count() int {
	if w.has {
		return 1
	}
	return 0
}

// named reports whether an acknowledgement has the id that is withheld, and notes that.
func (w *withheld) named(a *Acknowledgement) bool {
	if !w.has {
		return false
	}
	named := int32(a.UpTo-w.id) >= 0 || a.HasEcho && a.Echo.ID == w.id
	for _, s := range a.Ranges {
		named = named || w.id-s.First < uint32(s.Count)
	}
	w.lied = w.lied || named
	return named
}

// release has the id leave when a later one is among those that are acknowledged.
func (w *withheld) release(acked []uint32) {
	if !w.has || w.leaves {
		return
	}
	for _, id := range acked {
		w.leaves = w.leaves || int32(id-w.id) > 0
	}
}

// chance returns a random number below n.
func (f *Flight) chance(n uint32) uint32 {
	if f.cfg.Random == nil {
		return 0
	}
	return f.cfg.Random() % n
}

// withholds reports whether the next id is withheld: on paths that others may use too.
func (f *Flight) withholds() bool {
	return f.far && f.next-f.cfg.Epoch > f.withheld.after && f.cfg.Random != nil && !f.withheld.has && f.wire.n >= withholdFrom && int(f.next-f.oldest)+2 <= f.window
}

func (f *Flight) withhold() {
	w := &f.withheld
	w.id, w.has, w.leaves = f.take(), true, false
	*f.frame(w.id) = flightFrame{id: w.id}
	w.after = f.next - f.cfg.Epoch + uint32(withholdRounds*f.wire.n) + f.chance(withholdChance)
}

// Withheld reports whether the id that was withheld has to be used now, for a frame without messages.
func (f *Flight) Withheld() bool { return f.withheld.has && f.withheld.leaves }

// TrackWithheld uses that id for a frame.
func (f *Flight) TrackWithheld(now Instant, bytes int) (id uint32) {
	f.withheld.has = false
	f.begin(now, f.withheld.id, bytes)
	return f.withheld.id
}

// Lied reports whether the peer acknowledged a frame that had not left.
func (f *Flight) Lied() bool { return f.withheld.lied }
