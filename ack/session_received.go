package ack

import (
	mathbits "math/bits"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// MostAhead is how far after the cumulative acknowledgement a frame of a session may be.
const MostAhead = 1 << 14

// Arrival says what the id of a session's frame says about its frame.
type Arrival uint8

const (
	Fresh  Arrival = iota // it has not arrived so far
	Copied                // it has arrived, and was applied
	Beyond                // further ahead than a peer that keeps the rules sends
)

// ReceivedIDs has the ids of the frames of one session that have arrived. It is exact over all 32 bits of the ids: nothing that has
// arrived is taken for fresh, and nothing fresh for a copy. It belongs to the goroutine that receives.
type ReceivedIDs struct {
	upTo uint32 // all ids up to it have arrived
	// ahead has a bit for each id after upTo, by id modulo MostAhead; nil before the first frame that is out of order.
	ahead  *aheadBits
	memory *AheadMemory // nil: it has its own
	n      int          // bits in ahead
	top    uint32       // the highest id in it

	// last is the frame that arrived last, at lastAt, without its Delay. Before the first frame it is the epoch.
	last     Echo
	lastAt   Instant
	hasFrame bool
}

type aheadBits [MostAhead / 64]uint64

// AheadMemory is memory for frames out of order that no session needs now: most need it now and then, few at the same time. It belongs to
// the goroutine that receives for all of them.
type AheadMemory struct{ spare []*aheadBits } // without a bit that is set

// mostSpare is of how many sessions memory is kept. Arbitrary.
const mostSpare = 16

func (m *AheadMemory) take() *aheadBits {
	if m == nil || len(m.spare) == 0 {
		return new(aheadBits)
	}
	n := len(m.spare) - 1
	bits := m.spare[n]
	m.spare = m.spare[:n]
	return bits
}

func (m *AheadMemory) give(bits *aheadBits) {
	if m != nil && len(m.spare) < mostSpare {
		m.spare = append(m.spare, bits)
	}
}

// Share has w take memory for frames out of order from m, and give it back there.
func (w *ReceivedIDs) Share(m *AheadMemory) { w.memory = m }

// Begin starts a session whose ids follow epoch. Memory for frames out of order is kept.
func (w *ReceivedIDs) Begin(epoch uint32) {
	if w.n > 0 {
		clear(w.ahead[:])
	}
	*w = ReceivedIDs{upTo: epoch, last: Echo{ID: epoch}, ahead: w.ahead, memory: w.memory}
}

// UpTo returns the cumulative acknowledgement.
func (w *ReceivedIDs) UpTo() uint32 { return w.upTo }

// Holes reports whether frames arrived after one that did not.
func (w *ReceivedIDs) Holes() bool { return w.n > 0 }

// Check says what is known of an id, without changing anything: a frame that cannot be applied now has not arrived.
func (w *ReceivedIDs) Check(id uint32) Arrival {
	switch d := int32(id - w.upTo); {
	case d <= 0:
		return Copied
	case d > MostAhead:
		return Beyond
	case w.n > 0 && w.ahead[id%MostAhead/64]>>(id%64)&1 != 0:
		return Copied
	}
	return Fresh
}

// Arrive notes a frame that is Fresh, and has been applied.
func (w *ReceivedIDs) Arrive(now Instant, id uint32, copied uint8) {
	w.note(now, Echo{ID: id, Copy: copied})
	if w.n == 0 && id == w.upTo+1 {
		w.upTo = id
		return
	}
	if w.ahead == nil {
		w.ahead = w.memory.take()
	}
	if w.n == 0 || int32(id-w.top) > 0 {
		w.top = id
	}
	w.ahead[id%MostAhead/64] |= 1 << (id % 64)
	w.n++
	if id == w.upTo+1 {
		w.advance()
	}
}

// ArriveAgain notes a frame that is Copied.
func (w *ReceivedIDs) ArriveAgain(now Instant, id uint32, copied uint8) {
	w.note(now, Echo{ID: id, Copy: copied, Again: true})
}

func (w *ReceivedIDs) note(now Instant, e Echo) { w.last, w.lastAt, w.hasFrame = e, now, true }

// advance moves the cumulative acknowledgement over what has arrived, a word at a time.
func (w *ReceivedIDs) advance() {
	for w.n > 0 {
		id := w.upTo + 1
		word := &w.ahead[id%MostAhead/64]
		run := mathbits.TrailingZeros64(^(*word >> (id % 64))) // of bits that are set
		if run == 0 {
			return
		}
		run = min(run, int(64-id%64))
		*word &^= (1<<run - 1) << (id % 64)
		w.upTo += uint32(run)
		w.n -= run
	}
}

// Trim gives back the memory for frames out of order, if there are none.
func (w *ReceivedIDs) Trim() {
	if w.n == 0 && w.ahead != nil {
		w.memory.give(w.ahead)
		w.ahead = nil
	}
}

// AppendRanges appends the runs of ids after the cumulative acknowledgement, ascending: of more than frame.MostRanges the lowest, and
// the highest.
func (w *ReceivedIDs) AppendRanges(dst []frame.Range) []frame.Range {
	if w.n == 0 {
		return dst
	}
	begin := len(dst)
	left := w.n
	for id := w.find(w.upTo+1, true); left > 0; {
		end := w.find(id, false)
		n := int(end - id)
		left -= n
		if len(dst)-begin == frame.MostRanges-1 && left > 0 {
			// The highest run ends at top.
			first := w.top
			for first-1 != end && w.has(first-1) {
				first--
			}
			return append(dst, frame.Range{First: first, Count: int(w.top-first) + 1})
		}
		dst = append(dst, frame.Range{First: id, Count: n})
		if left > 0 {
			id = w.find(end, true)
		}
	}
	return dst
}

func (w *ReceivedIDs) has(id uint32) bool { return w.ahead[id%MostAhead/64]>>(id%64)&1 != 0 }

// find returns the first id from id on whose bit is set, or is not. The caller knows that there is one.
func (w *ReceivedIDs) find(id uint32, set bool) uint32 {
	for {
		word := w.ahead[id%MostAhead/64]
		if !set {
			word = ^word
		}
		if word >>= id % 64; word != 0 {
			return id + uint32(mathbits.TrailingZeros64(word))
		}
		id += 64 - id%64
	}
}

// Echo is what an acknowledgement tells of the frame that arrived last.
type Echo struct {
	ID    uint32
	Copy  uint8
	Again bool
	Delay time.Duration // since it arrived
}

// Echo returns what to tell at that time. Before the first frame it has the id before the first one, and Delay is
// an hour: nothing can be measured by it.
func (w *ReceivedIDs) Echo(now Instant) Echo {
	e := w.last
	if e.Delay = time.Hour; w.hasFrame {
		e.Delay = now.Sub(w.lastAt)
	}
	return e
}
