package inspect

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
)

// Bounds of what is kept of a flow for pictures and findings.
const (
	mostPoints  = 1600
	mostMarks   = 250 // of each kind
	mostLives   = 8
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
	rest     []byte // behind the header, if there are no messages
	services frame.Services
	told     bool // by an introduction, what the services are
	data     int64
	cut      bool
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

	frames, messages, wire            int64
	withMessages, alone, introduction int
	met                               bool  // an introduction names a life of the peer, which told it
	firsts                            int   // frames with messages, seen for the first time
	data, dataFirst                   int64 // all copies, and the first of each
	resent, resentIDs, duplicates     int
	together                          int // duplicates with the time of the copy before
	alike                             int // resent with the header of the copy before: the network may have held back what it doubled
	others, othersAgain               int // frames that are never sent again, and how many of them came again
	live                              int // resent, under the transaction id of a later frame
	uncounted                         int // messages with data under the count 0
	late, tooOld, conflicts           int
	missing, missingAcked             int
	gaps                              int // ids that no frame of the capture has, so far as others show that; late ones included
	acked, unacked, pending           int
	abandoned                         int // unacknowledged when their sender began anew
	acksAlone, acksCarried            int // acknowledgements in this flow's frames
	acksSent                          int64
	acksStale, acksOld                int // acknowledgements of this flow that name nothing present
	earlyAcks                         int // frames sent again although an acknowledgement had been captured
	toEnded                           int // of the unacknowledged, sent before the peer began anew
	peerEnded                         int // the record in which it did last
	firstUnacked, firstToEnded        slot
	firstMissing, firstMissingAcked   slot
	firstConflict, firstJump          int // records
	firstCopy, firstLive              int // records
	firstUncounted                    int
	hidden, hiddenPlaced              int // frames behind the snap length, those of which the id is known
	joinedSize                        int // of frames in records of several

	ids             ids
	introducedFirst bool     // its first frame in the capture is an introduction
	aligned         bool     // it is known how far its sender's ids, in 32 bits, are above these,
	lifted          ack.Wide // namely so far
	base            ack.Wide // the id whose height is raised
	raised          int64
	strays          stray
	lives           []uint32
	life            uint32
	services        frame.Services // as that life introduced itself last
	told            bool
	spoke           time.Duration // when its sender was heard last, in whatever life
	unheard         unheard
	pauses          []Pause
	nPauses         int
	restarts        []Restart
	nRestart        int
	cut             int // frames whose last messages may not be known
	cuts            int // all frames that were cut
	jumps           int // places where the ids leap, and the frames cannot all have been lost

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
	ours              bool // its sender is of our own kind, which announces a restart

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

// isIntroduction reports whether a message is how endpoints of our kind tell
// each other of their lives: it writes nothing at all.
func isIntroduction(s *seen) bool {
	if len(s.messages) != 1 {
		return false
	}
	if _, ok := s.messages[0].Hello(); ok {
		return true
	}
	_, ok := frame.HandshakeOf(&frame.Frame{}, &s.messages[0])
	return ok
}

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
	if _, stamped := s.stamp(); stamped {
		f.ours = true
	}
	switch {
	case isIntroduction(s):
		f.introduction++
		f.ours = true
		if f.shakes(s) {
			f.services, f.told = s.services, s.told
		} else if f.introduced(s) {
			f.services, f.told = s.services, s.told
			f.other(s)
		} else if !toStranger(s) && f.ids.begun && f.goesOn(ack.Wide(s.HelloID())) {
			f.other(s) // for a peer that restarted, it still asks as the life that the one before knew
		}
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
	if !toStranger(s) {
		f.spoke = max(f.spoke, s.at)
	}
}

// toStranger reports whether a frame is what endpoints of our kind tell somebody they do not know, of whom they keep nothing: it
// names a life that is used once, and has no id.
func toStranger(s *seen) bool { return isIntroduction(s) && s.HelloID() == 0 }

// introduced looks at which life of its sender an introduction speaks for, and
// reports whether that is the present one. The network may have held it back.
func (f *flow) introduced(s *seen) bool {
	life := s.messages[0].Txn
	if h, _ := s.messages[0].Hello(); h.Peer != 0 {
		f.met = true
	}
	if toStranger(s) {
		return false
	}
	if slices.Contains(f.lives, life) {
		return life == f.life
	}
	if len(f.lives) == mostLives {
		f.lives = slices.Delete(f.lives, 0, 1)
	}
	f.lives = append(f.lives, life)
	f.life = life
	id := ack.Wide(s.HelloID())
	switch {
	case !f.ids.begun:
		f.introducedFirst = true
		f.begin(id)
		f.aligned, f.lifted = true, 0
	case f.goesOn(id):
		// Ids go on: the same program answers to another name, because its
		// peer restarted.
	case !f.aligned && abs(s.Seq.Diff(f.ids.newest.Seq())) < 1024:
		f.aligned, f.lifted = true, id-f.ids.newest.Near(s.Seq)
	default:
		f.restart(s, id, "a new life introduced itself")
	}
	return true
}

// goesOn reports whether the id of an introduction, in 32 bits, is one of the numbering that there is.
func (f *flow) goesOn(id ack.Wide) bool {
	return f.aligned && abs((id-f.lifted).Diff(f.ids.newest)) < mostSlots
}

// other takes a frame whose id needs no acknowledgement.
func (f *flow) other(s *seen) {
	w, ok := f.place(s)
	if !ok {
		return
	}
	if st, stamped := s.stamp(); stamped && !f.aligned {
		f.aligned, f.lifted = true, st.seq-w
	}
	x := f.ids.known(w)
	if !isIntroduction(s) {
		f.others++
		if x != nil && x.state == slotOther {
			f.othersAgain++
		}
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

// stamp is what frames without messages carry between endpoints of our kind,
// in place of padding: the receiver's life, their own id in 32 bits, and the
// first one that they acknowledge.
type stamp struct {
	life       uint32
	seq, start ack.Wide
}

func (s *seen) stamp() (st stamp, ok bool) {
	if s.HasMessages() || len(s.rest) < 12 {
		return st, false
	}
	st = stamp{
		binary.LittleEndian.Uint32(s.rest), ack.Wide(binary.LittleEndian.Uint32(s.rest[4:])),
		ack.Wide(binary.LittleEndian.Uint32(s.rest[8:])),
	}
	return st, st.life != 0 && st.seq.Seq() == s.Seq && st.start.Seq() == s.AckStart
}
