package inspect

import (
	"hash/maphash"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
)

// Bounds of what is kept of a flow for pictures and findings.
const (
	mostPoints  = 1600
	mostMarks   = 250 // of each kind
	mostWorst   = 8
	mostRestart = 16
)

type flowKey struct {
	src, dst     capture.Addr
	srcID, dstID frame.EndpointID
}

// seen is a frame of the capture, as far as it was captured.
type seen struct {
	frame.Header
	record   int
	place    int // among all frames
	at       time.Duration
	wire     int
	messages []frame.Message
	services frame.Services
	told     bool // by a handshake, what the services are
	data     int64
	cut      bool
	shake    frame.Handshake // if it is of one
	refusal  frame.Refusal
	refused  bool // there is one, if that is what the message says

	inSession bool
	head      frame.SessionHeader // if inSession
	session   frame.SessionFrame  // likewise, if it was captured whole
}

// flow is all that is known of one direction between two endpoints.
type flow struct {
	key     flowKey
	number  int
	reverse *flow

	first, last             time.Duration
	firstRecord, lastRecord int

	frames, messages, wire          int64
	withMessages, alone, shaken     int
	firsts                          int   // frames with messages, seen for the first time
	data, dataFirst                 int64 // all copies, and the first of each
	resent, resentIDs, duplicates   int
	together                        int // duplicates with the time of the copy before
	alike                           int // resent with the header of the copy before: the network may have held back what it doubled
	others, othersAgain             int // frames that are never sent again, and how many of them came again
	live                            int // resent, under the transaction id of a later frame
	uncounted                       int // messages with data under the count 0
	late, tooOld, conflicts         int
	missing, missingAcked           int
	gaps                            int // ids that no frame of the capture has, so far as others show that; late ones included
	acked, unacked, pending         int
	abandoned                       int // unacknowledged when their sender began anew
	acksAlone, acksCarried          int // acknowledgements in this flow's frames
	acksSent                        int64
	acksStale, acksOld              int // acknowledgements of this flow that name nothing present
	earlyAcks                       int // frames sent again although an acknowledgement had been captured
	toEnded                         int // of the unacknowledged, sent before the peer began anew
	peerEnded                       int // the record in which it did last
	firstUnacked, firstToEnded      slot
	firstMissing, firstMissingAcked slot
	firstConflict, firstJump        int // records
	firstCopy, firstLive            int // records
	firstUncounted                  int
	hidden, hiddenPlaced            int // frames behind the snap length, those of which the id is known
	joinedSize                      int // of frames in records of several

	ids       ids
	fromFirst bool     // the handshake of its first session is in the capture, and the first ids follow it
	base      ack.Wide // the id whose height is raised
	raised    int64
	strays    stray
	services  frame.Services // as its sender told last
	told      bool
	spoke     time.Duration // when its sender was heard last, in whatever life
	unheard   unheard
	pauses    []Pause
	nPauses   int
	restarts  []Restart
	nRestart  int
	cut       int // frames whose last messages may not be known
	cuts      int // all frames that were cut
	jumps     int // places where the ids leap, and the frames cannot all have been lost

	inFlight          int
	window            window
	once, repeated    histogram
	tx                transactions
	series            series
	points, ackPoints thinned[Point]
	marks             [markKinds]thinned[Mark]
	worst             top[slot]
	newestAcked       ack.Wide
	anyAcked          bool
	ackedSent         int // the place of the latest frame that was acknowledged
	session           following

	a *Analyzer
}

func (a *Analyzer) newFlow(k flowKey, s *seen) *flow {
	f := &flow{
		key: k, number: len(a.order), a: a, first: s.at, firstRecord: s.record, tx: newTransactions(),
		series: series{from: s.at, width: firstWidth},
		points: thinned[Point]{limit: mostPoints}, ackPoints: thinned[Point]{limit: mostPoints},
		worst: top[slot]{n: mostWorst, less: func(a, b *slot) bool { return a.sent < b.sent }},
	}
	for i := range f.marks {
		f.marks[i].limit = mostMarks
	}
	return f
}

// ofHandshake reports whether the frame is of how two endpoints of our kind begin a session: it writes nothing at all.
func (s *seen) ofHandshake() bool { return s.shake.Kind != frame.NoHandshake }

// ours reports whether the sender is of our own kind.
func (f *flow) ours() bool { return f.shaken > 0 || f.session.any }

var seed = maphash.MakeSeed()

// brief is the first message in brief: what tells a frame sent again from another
// one under the same id. Data may be cut away, and padding changes.
type brief struct {
	txn, word uint32
	place     uint32 // condenses all else
}

func briefOf(m *frame.Message) brief {
	rest := *m
	rest.Txn, rest.CompletionValue = 0, 0
	var b [frame.MessageHeaderSize]byte
	rest.Put(b[:])
	return brief{m.Txn, m.CompletionValue, uint32(maphash.Bytes(seed, b[:]))}
}

func (f *flow) direction() flowKey { return f.key }

func (f *flow) add(s *seen) {
	f.frames++
	f.wire += int64(s.wire)
	if s.cut {
		f.cuts++
	}
	f.last, f.lastRecord = max(f.last, s.at), s.record
	if s.AckCount > 0 {
		f.acksSent += int64(s.AckCount)
		if len(s.messages) > 0 {
			f.acksCarried++
		} else {
			f.acksAlone++
		}
	}
	switch {
	case s.ofHandshake():
		f.shaken++
		f.shakes(s)
		return // its sender need not have anything of a session
	case len(s.messages) == 0:
		f.alone++
		f.other(s)
	default:
		f.withMessages++
		f.messages += int64(len(s.messages))
		if s.cut {
			f.cut++
		}
		f.data += s.data
		resent := f.resent
		f.message(s)
		f.waits(s, f.resent > resent)
	}
	f.spoke = max(f.spoke, s.at)
}

// other takes a frame whose id needs no acknowledgement.
func (f *flow) other(s *seen) {
	w, ok := f.place(s)
	if !ok {
		return
	}
	x := f.ids.known(w)
	f.others++
	if x != nil && x.state == slotOther {
		f.othersAgain++
	}
	if x != nil && (x.state == slotMissing || x.state == slotHidden) {
		*x = slot{id: w, state: slotOther}
	} else if x == nil && f.ids.fresh(w) {
		f.ids.put(slot{id: w, state: slotOther})
	}
}

func (f *flow) setInFlight(at time.Duration, n int) {
	f.inFlight = n
	f.series.inFlight(at, n)
}

func (f *flow) mark(k markKind, m Mark) {
	m.Kind = markNames[k]
	f.marks[k].add(m)
}

func abs(n int) int { return max(n, -n) }
