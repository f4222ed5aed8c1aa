package foreign

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
)

// Verdict says what a frame with messages is.
type Verdict uint8

const (
	New       Verdict = iota
	Copy              // of a frame that was applied
	Down              // the peer was given up: nothing of it is taken
	OtherLife         // it is of another life, or the network held it back
	Restart           // so is this one, which seems to be of a life that has just begun
)

// heldBack is for how long the network may hold a frame back while others pass.
// Arbitrary: long for that, and short compared to the start of a process.
const heldBack = time.Second

// Receiver is what is received from a peer without sessions. All of it belongs to the holder of the receive lock.
type Receiver struct {
	Ledger
	profile  *Profile
	open     *reassembly.Table
	recv     ack.Receiver
	acks     []ack.Range // what this batch acknowledged
	arrivals arrivals
	missing  missing
	suspect  bool        // the peer seems to have restarted, and that was reported
	resent   bool        // it has sent something again
	accepted bool        // something was, since the last reset
	freshAt  ack.Instant // when something new came last
	tookAt   ack.Instant // when data did
	farData  frame.Seq   // last id of data further ahead than Ahead, if ahead
	farAlone frame.Seq   // last id of a frame without data
	ahead    bool        // the last data was
	youngest uint32      // transaction that was accepted
	life     life

	// Of the frame at hand.
	tag uint16
	txn uint32 // of its first message
}

// Init makes r the receiver of frames of a peer, whose incomplete transactions are in open.
func (r *Receiver) Init(p *Profile, open *reassembly.Table) {
	*r = Receiver{profile: p, open: open}
	r.Ledger = Ledger{open: open, recv: &r.recv, overCounts: p.OverCounts}
	r.recv.Init(ack.ReceiverConfig{
		History: p.History, Repeat: p.Acks == AckRepeat, SplitAtWrap: p.SplitAcks, Ahead: p.Ahead,
	})
}

// Forget begins again with the peer.
func (r *Receiver) Forget() {
	r.recv.Reset()
	r.acks = r.acks[:0]
	r.suspect, r.resent, r.accepted = false, false, false
	r.life = life{}
	r.missing = missing{} // arrivals stay: only of ids that came since are they asked for
	r.Ledger.forget()
}

// Acks returns what the peer acknowledged in this batch.
func (r *Receiver) Acks() []ack.Range { return r.acks }

// Newest returns the newest id that came.
func (r *Receiver) Newest() frame.Seq { return r.recv.Newest() }

// Judge says what a frame with messages is; m is the first. Of a frame that is New the caller calls Applied or Refused, and of a Copy it calls
// Again. down: the peer was given up.
func (r *Receiver) Judge(now ack.Instant, f *frame.Frame, m *frame.Message, down bool) Verdict {
	r.tag, r.txn = tagOf(m), m.Txn
	far := r.isFar(f.Seq)
	again := r.ahead && r.farData == f.Seq
	r.farData, r.ahead = f.Seq, far
	if down {
		return Down
	}
	verdict := r.recv.Check(f.Seq)
	if verdict == ack.Far {
		// Not acknowledged either: if it is true, it comes again, or the next one
		// is believed.
		r.recv.Sight(f.Seq)
		return OtherLife
	}
	v := r.judge(now, verdict, f.Seq, m)
	switch {
	case v == OtherLife:
		return r.suspectRestart(now, f.Seq)
	case far && r.flows(now) && !r.goesOn(m.Txn, again): // and no process starts so soon
		return OtherLife
	case v == New && r.profile.NeverRetransmits:
		r.missing.came(now, f.Seq)
	}
	return v
}

// Applied notes that the frame at hand, which is New, was applied.
func (r *Receiver) Applied(now ack.Instant, f *frame.Frame) {
	r.recv.Accept(f.Seq, r.tag)
	r.acksOf(now, f)
	r.arrivals.note(now, f.Seq, r.txn)
	if !r.accepted || int32(r.txn-r.youngest) > 0 {
		r.youngest = r.txn
	}
	r.accepted, r.freshAt, r.tookAt = true, now, now
}

// AppliedRun notes that n frames with the ids after the newest one were applied, each of which goes on where the one before ended, the first
// where m did. They acknowledge nothing.
func (r *Receiver) AppliedRun(now ack.Instant, n int, m *frame.Message) {
	x := *m
	var tags [128]uint16
	for n > 0 {
		some := min(n, len(tags))
		n -= some
		q := r.recv.Newest()
		for i := range some {
			q++
			if r.profile.NeverRetransmits {
				r.missing.came(now, q)
			}
			r.arrivals.note(now, q, x.Txn)
			x.Index++
			x.Addr += uint32(x.Len)
			tags[i] = tagOf(&x)
		}
		r.farData, r.ahead = q, false
		r.recv.AcceptRun(tags[:some])
		r.tag, r.txn = tags[some-1], x.Txn
	}
}

// Refused notes that the frame at hand, which is New, was not applied: what it acknowledges counts.
func (r *Receiver) Refused(now ack.Instant, f *frame.Frame) { r.acksOf(now, f) }

// Again acts on the frame at hand, which is a Copy: its acknowledgement may be
// lost, and its own acknowledgements count (DGRDMA-028, DGRDMA-032).
func (r *Receiver) Again(now ack.Instant, f *frame.Frame) {
	r.acksOf(now, f)
	if r.copied(now, f.Seq, r.txn) {
		r.recv.Again(f.Seq)
	}
}

// Alone acts on a frame without messages. Whatever its id, it is never acknowledged (DGRDMA-024): that would not end.
func (r *Receiver) Alone(now ack.Instant, f *frame.Frame) {
	r.acksOf(now, f)
	// Drivers acknowledge again and again under the id that their next data will have. Two
	// of these that the network held back for half of all ids are no witness of each other;
	// while data comes they are one for younger data alone.
	far := r.isFar(f.Seq)
	again := far && r.farAlone == f.Seq
	r.farAlone = f.Seq
	switch {
	case far && r.flows(now) && !r.profile.KeepsIDs:
		r.recv.Sight(f.Seq)
	case !again:
		if _, missing := r.recv.Missing(f.Seq, f.Seq); missing && r.profile.NeverRetransmits && r.recv.Check(f.Seq) != ack.Far {
			r.missing.came(now, f.Seq)
		}
		r.recv.AckOnly(f.Seq)
	}
	r.freshAt = now
}

// DropBatch forgets what the peer acknowledged in this batch, and what is to be acknowledged to it.
func (r *Receiver) DropBatch() {
	r.acks = r.acks[:0]
	r.recv.DropPending()
}

// isFar reports whether an id is further ahead than those of this life can be, unless what
// used up the ids between was lost.
func (r *Receiver) isFar(q frame.Seq) bool {
	return r.profile.Ahead > 0 && r.accepted && q.Diff(r.recv.Newest()) > r.profile.Ahead
}

// flows reports whether the data of this life comes.
func (r *Receiver) flows(now ack.Instant) bool { return now.Sub(r.tookAt) < heldBack }

// goesOn reports whether data further ahead than Ahead, for which there is a witness, can be
// of this life: nothing that was held back is of a younger transaction than all that came.
func (r *Receiver) goesOn(txn uint32, again bool) bool {
	switch d := int32(txn - r.youngest); {
	case r.profile.KeepsIDs, d == 0:
		return again
	case d > 0:
		return true
	}
	return again && r.open.Find(txn) != nil
}

// judge says what a frame is whose id is not far: New, Copy or OtherLife.
func (r *Receiver) judge(now ack.Instant, verdict ack.Verdict, q frame.Seq, m *frame.Message) Verdict {
	p := r.profile
	behind := r.recv.Newest().Diff(q)
	switch {
	case verdict == ack.Old, p.Behind > 0 && r.accepted && behind >= p.Behind:
		return OtherLife
	case verdict == ack.New:
		return New
	}
	before, known := r.arrivals.last(q)
	same := r.recv.Carried(q, r.tag)
	switch {
	case !same && !p.LiveHeaders:
		return OtherLife
	case !same && known && int32(m.Txn-before.txn) < 0:
		return OtherLife
	case !same && known && m.Txn == before.txn && !p.KeepsIDs:
		return OtherLife
	case p.CopyFor > 0 && (r.suspect || isFirst(q)) && (!known || now.Sub(before.at) >= p.CopyFor):
		return OtherLife
	}
	return Copy
}

// suspectRestart returns what a frame is that its peer cannot have sent in the life that is
// known. Peers without sessions are taken back by Reset only: their ids say
// too little. Where the frames of the old life still come, what is far before
// them was held back by the network.
func (r *Receiver) suspectRestart(now ack.Instant, q frame.Seq) Verdict {
	p := r.profile
	flows := p.Behind > 0 && r.recv.Newest().Diff(q) >= p.Behind && now.Sub(r.freshAt) < heldBack
	if r.suspect || !isFirst(q) || flows {
		return OtherLife
	}
	r.suspect = true
	return Restart
}

// acksOf notes what a frame acknowledges.
func (r *Receiver) acksOf(now ack.Instant, f *frame.Frame) {
	if r.profile.Cumulative && !r.life.goesOn(now, r.recv.Newest(), f.Seq, f.AckStart, f.AckStart.Add(int(f.AckCount))) {
		return
	}
	if f.AckCount > 0 || r.profile.Cumulative {
		r.acks = append(r.acks, ack.Range{Start: f.AckStart, Count: f.AckCount})
	}
}
