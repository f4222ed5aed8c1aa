package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// A peer that does not introduce its lives starts again with ids that we know.
// To acknowledge a frame of the new life as a copy loses it silently
// (DGRDMA-041); to refuse a copy leaves the peer without its acknowledgement, and
// a C++ driver ends at its 256th frame after that (quirk D1-6). What a frame is,
// with d ids from it to the newest one, of which the profile says:
//
//	ahead by more than Ahead  foreign the first time. While the data of this life comes,
//	                          so is each but of a younger transaction, and the same again
//	                          of one that is not over: the network held it back for half
//	                          of all ids
//	ahead (d < 0)             new
//	d >= Behind               foreign: the peer cannot wait for it any more, so it was
//	                          held back by the network, or a new life sent it
//	not received so far       new
//	older transaction than    foreign: the transaction of a frame only changes when its
//	came under this id        request is posted again, under a newer one
//	same transaction, other   foreign, but for peers that keep the id of a transfer (quirk
//	address, words or counts  L5): their request was posted again
//	last copy CopyFor ago,    foreign: the peer would have sent it again meanwhile. In
//	among the first ids       the midst of a life an outage looks like this
//	anything else             a copy, whatever its header says: drivers send a frame
//	                          again with the header that its request has now (V3)
//
// Once a life is suspected, CopyFor counts for all ids. So a new life that sends
// the like, to the same places, within CopyFor of the first ids of the old one
// cannot be told from it, and is acknowledged (V4). The data does not help: a
// buffer that is filled again before it is posted again looks the same.

// foreignReceiving is what is received from a peer of another kind. It belongs to who has
// the turn to receive.
type foreignReceiving struct {
	*receiving
	arrivals arrivals
	gaps     gaps
	suspect  bool        // the peer seems to have restarted, and that was reported
	resent   bool        // it has sent something again
	accepted bool        // something was, since the last reset
	freshAt  ack.Instant // when something new came last
	tookAt   ack.Instant // when data did
	farData  frame.Seq   // last id of data further ahead than Ahead, if ahead
	farAlone frame.Seq   // last id of a frame without data
	ahead    bool        // the last data was
	youngest uint32      // transaction that was accepted
	story    story
	foreignLedger
}

var (
	_ receivingKind = (*foreignReceiving)(nil)
	_ ledger        = (*foreignLedger)(nil)
)

// forget implements receivingKind.
func (o *foreignReceiving) forget() {
	o.suspect, o.resent, o.accepted = false, false, false
	o.story = story{}
	o.gaps = gaps{} // arrivals stay: only of ids that came since are they asked for
	o.known = false
}

func (o *foreignReceiving) introduced() bool { return true }

// judge implements receivingKind.
func (o *foreignReceiving) judge(now ack.Instant, f *frame.Frame, first *frame.Message) (kinship, Reason) {
	o.livedAt = now // it names no life, so whatever comes is all that it has to show
	far := o.isFar(f.Seq)
	again := o.ahead && o.farData == f.Seq
	o.farData, o.ahead = f.Seq, far
	verdict, why := o.check(f.Seq, first.Txn)
	if why != RefusedNone {
		return settled, why
	}
	kin := o.kin(now, verdict, f.Seq, first)
	switch {
	case kin == strange:
		return settled, o.suspectRestart(now, f, first)
	case far && o.flows(now) && !o.goesOn(first.Txn, again): // and no process starts so soon
		return settled, o.refused(RefusedForeign, first.Txn, nil)
	case kin == fresh && o.profile.NeverRetransmits:
		o.gaps.came(now, f.Seq)
	}
	return kin, RefusedNone
}

// isFar reports whether an id is further ahead than those of this life can be, unless what
// used up the ids between was lost.
func (o *foreignReceiving) isFar(q frame.Seq) bool {
	return o.profile.Ahead > 0 && o.accepted && q.Diff(o.recv.Newest().Seq()) > o.profile.Ahead
}

// flows reports whether the data of this life comes.
func (o *foreignReceiving) flows(now ack.Instant) bool { return now.Sub(o.tookAt) < heldBack }

// goesOn reports whether data further ahead than Ahead, for which there is a witness, can be
// of this life: nothing that was held back is of a younger transaction than all that came.
func (o *foreignReceiving) goesOn(txn uint32, again bool) bool {
	switch d := int32(txn - o.youngest); {
	case o.profile.KeepsIDs, d == 0:
		return again
	case d > 0:
		return true
	}
	return again && o.open.find(txn) != nil
}

// kin says what a frame is; m is its first message.
func (o *foreignReceiving) kin(now ack.Instant, verdict ack.Verdict, q frame.Seq, m *frame.Message) kinship {
	p := &o.profile
	behind := o.recv.Newest().Seq().Diff(q)
	switch {
	case verdict == ack.Old, p.Behind > 0 && o.accepted && behind >= p.Behind:
		return strange
	case verdict == ack.New:
		return fresh
	}
	before, known := o.arrivals.last(q)
	same := o.recv.Carried(q, tagOf(m))
	switch {
	case !same && !p.LiveHeaders:
		return strange
	case !same && known && int32(m.Txn-before.txn) < 0:
		return strange
	case !same && known && m.Txn == before.txn && !p.KeepsIDs:
		return strange
	case p.CopyFor > 0 && (o.suspect || isFirst(q)) && (!known || now.Sub(before.at) >= p.CopyFor):
		return strange
	}
	return sameAgain
}

// suspectRestart refuses a frame that its peer cannot have sent in the life we
// know. Peers without introduction are taken back by Reset only: their ids say
// too little. Where the frames of the old life still come, what is far behind
// them was held back by the network.
func (o *foreignReceiving) suspectRestart(now ack.Instant, f *frame.Frame, m *frame.Message) Reason {
	p := &o.profile
	flows := p.Behind > 0 && o.recv.Newest().Seq().Diff(f.Seq) >= p.Behind && now.Sub(o.freshAt) < heldBack
	if !o.suspect && isFirst(f.Seq) && !flows {
		o.suspect = true
		o.events.event(Event{Kind: PeerRestarted, Reason: RefusedForeign, Txn: m.Txn})
	}
	return o.refused(RefusedForeign, m.Txn, nil)
}

// heldBack is for how long the network may hold a frame back while others pass.
// Arbitrary: long for that, and short beside the start of a process.
const heldBack = time.Second

// alone implements receivingKind.
func (o *foreignReceiving) alone(now ack.Instant, f *frame.Frame) Reason {
	o.livedAt = now
	if o.down.Load() {
		return o.drop(RefusedDown)
	}
	o.acksOf(f)
	// Drivers acknowledge again and again under the id that their next data will have. Two
	// of these that the network held back for half of all ids are no witness of each other;
	// while data comes they are one for younger data alone.
	far := o.isFar(f.Seq)
	again := far && o.farAlone == f.Seq
	o.farAlone = f.Seq
	switch {
	case far && o.flows(now) && !o.profile.KeepsIDs:
		o.recv.Sight(f.Seq)
	case !again:
		if _, missing := o.recv.Missing(f.Seq, f.Seq); missing && o.profile.NeverRetransmits && o.recv.Check(f.Seq) != ack.Far {
			o.gaps.came(now, f.Seq)
		}
		o.recv.AckOnly(o.recv.Wide(f.Seq))
	}
	o.freshAt = now
	o.up()
	return RefusedNone
}

// acksOf implements receivingKind.
func (o *foreignReceiving) acksOf(f *frame.Frame) {
	if o.profile.Cumulative && !o.story.goesOn(o.lastAt, o.recv.Newest().Seq(), f.Seq, f.AckStart, f.AckStart.Add(int(f.AckCount))) {
		return
	}
	if f.AckCount > 0 || o.profile.Cumulative {
		o.acks = append(o.acks, ack.Range{Start: f.AckStart, Count: f.AckCount})
	}
}

// took implements receivingKind.
func (o *foreignReceiving) took(now ack.Instant, f *frame.Frame, txn uint32) {
	o.acksOf(f)
	o.arrivals.note(now, f.Seq, txn)
	if !o.accepted || int32(txn-o.youngest) > 0 {
		o.youngest = txn
	}
	o.accepted, o.freshAt, o.tookAt = true, now, now
}

// tookRun implements receivingKind.
func (o *foreignReceiving) tookRun(now ack.Instant, n int, txn uint32) {
	q := o.recv.Newest().Seq()
	for range n {
		q++
		if o.profile.NeverRetransmits {
			o.gaps.came(now, q)
		}
		o.arrivals.note(now, q, txn)
	}
	o.farData, o.ahead = q, false
}

// copyDelay is how long after a frame its copy is a retransmission, and not the
// network's doing, for peers that a second acknowledgement harms (quirk D2-4).
const copyDelay = 100 * time.Millisecond

// copied implements receivingKind.
func (o *foreignReceiving) copied(now ack.Instant, q frame.Seq, txn uint32) bool {
	before, known := o.arrivals.last(q)
	o.arrivals.note(now, q, txn)
	if o.profile.Acks == AckIfResent && known && now.Sub(before.at) < copyDelay {
		return false
	}
	o.resent = true
	return true
}
