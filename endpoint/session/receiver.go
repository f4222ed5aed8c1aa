package session

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// Verdict says what a frame of a session is.
type Verdict uint8

const (
	InSession   Verdict = iota // of the session that there is
	OtherTag                   // of a session that there is not
	Resets                     // a RESET of the session
	NoChecksum                 // of the session, whose frames have a checksum, and has none
	AckOfUnsent                // of the session, and acknowledges what was not sent
)

// Receiver is what is received of the frames of a session: which of them came, and what they acknowledge. It belongs to the holder of the
// receive lock.
type Receiver struct {
	arrived       ack.ReceivedIDs
	local, remote Epoch // of the session; 0: there is none
	checks        bool  // its frames have a checksum
	log           *AckLog
	marks         frame.Marks // with which frames arrived

	// Of this batch.
	fresh     int    // frames that arrived
	urgent    bool   // an acknowledgement leaves at once
	marked    bool   // one that tells marks does
	upTo      uint32 // the newest acknowledgement that was piggybacked on data
	hasUpTo   bool
	acks      acksOf
	longest   int // length of the longest PROBE
	confirmed int // and of the longest one of ours that arrived at the peer
}

// Init makes r the receiver of a peer, whose ACKs are noted in log, and whose frames out of order in memory. There is no session.
func (r *Receiver) Init(log *AckLog, memory *ack.AheadMemory) {
	*r = Receiver{log: log}
	r.arrived.Share(memory)
}

// Begin begins a session.
func (r *Receiver) Begin(local, remote Epoch, checks bool) {
	r.local, r.remote, r.checks = local, remote, checks
	r.arrived.Begin(uint32(remote))
	r.marks = frame.Marks{}
}

// Forget ends the session.
func (r *Receiver) Forget() {
	r.local, r.remote, r.checks = 0, 0, false
	r.DropBatch()
	r.fresh, r.urgent, r.marked, r.longest, r.confirmed = 0, false, false, 0, 0
}

// DropBatch forgets what the peer acknowledged in this batch, and gives back memory that was needed in it.
func (r *Receiver) DropBatch() {
	r.acks, r.hasUpTo = acksOf{}, false
	r.arrived.Trim()
}

// HasSession reports whether there is a session.
func (r *Receiver) HasSession() bool { return r.local != 0 }

// Judge says what a frame is. checked: it had a checksum, which was right. next is the id of the first frame that was not sent.
func (r *Receiver) Judge(f *frame.SessionFrame, next uint32, checked bool) Verdict {
	switch {
	case r.local == 0:
		return OtherTag
	case f.Control == frame.ControlReset && f.Tag == Tag(r.remote, r.local):
		return Resets // also where both directions have the same tag
	case f.Control == frame.ControlReset || f.Tag != Tag(r.local, r.remote):
		return OtherTag
	case r.checks && !checked:
		return NoChecksum
	case f.Control != frame.ControlProbe && int32(f.Ack-next) >= 0:
		return AckOfUnsent
	}
	return InSession
}

// Acknowledges notes the acknowledgement that is piggybacked on a frame with messages, or on a bell.
func (r *Receiver) Acknowledges(upTo uint32) {
	if !r.hasUpTo || int32(upTo-r.upTo) > 0 {
		r.upTo, r.hasUpTo = upTo, true
	}
}

// Check says what is known of such a frame. The caller calls Arrived for one that is Fresh, when it was applied.
func (r *Receiver) Check(now ack.Instant, f *frame.SessionFrame) ack.Arrival {
	p := r.arrived.Check(f.ID)
	if p == ack.Copied {
		r.arrived.ArriveAgain(now, f.ID, f.Copy)
		r.urgent = true
	}
	return p
}

// Arrived notes that a frame that is Fresh was applied.
func (r *Receiver) Arrived(now ack.Instant, f *frame.SessionFrame) {
	if f.ID != r.arrived.UpTo()+1 {
		r.urgent = true
	}
	r.arrived.Arrive(now, f.ID, f.Copy)
	r.fresh++
}

// Marked notes that n frames that arrived could carry a mark of congestion, and whether they did. The peer is told of the first ones, and of each
// that did, at once (RFC 9000, section 13.2.1): what is piggybacked tells no marks.
func (r *Receiver) Marked(n int, congested bool) {
	r.marked = r.marked || congested || r.marks == frame.Marks{}
	if congested {
		r.marks.Congested += uint32(n)
	} else {
		r.marks.Capable += uint32(n)
	}
}

// IsNewest reports whether a frame that arrived is the newest, and none before it is missing.
func (r *Receiver) IsNewest(id uint32) bool { return r.arrived.UpTo() == id && !r.arrived.Holes() }

// ArrivedRun notes that the n frames after the newest one were applied, too.
func (r *Receiver) ArrivedRun(now ack.Instant, n int) {
	id := r.arrived.UpTo()
	for i := range uint32(n) {
		r.arrived.Arrive(now, id+1+i, 0)
	}
	r.fresh += n
}

// Note notes what an ACK, a PROBE or a PROBED says.
func (r *Receiver) Note(f *frame.SessionFrame) {
	switch f.Control {
	case frame.ControlAck:
		r.log.add(&r.acks, f)
	case frame.ControlProbe:
		size, _ := f.Probe()
		r.longest = max(r.longest, size)
	case frame.ControlProbed:
		size, _ := f.Probe()
		r.confirmed = max(r.confirmed, size)
	}
}

// MayHaveSaid reports whether an acknowledgement of this side may have said upTo, as what a RESET quotes has to.
func (r *Receiver) MayHaveSaid(upTo uint32) bool {
	behind := int32(r.arrived.UpTo() - upTo)
	return behind >= 0 && behind <= ack.MostAhead
}

// HasAcks reports whether the peer acknowledged something in this batch.
func (r *Receiver) HasAcks() bool { return r.acks.first != 0 || r.hasUpTo }

// NextAck returns what the peer acknowledged in this batch, one after the other, and has it no more; nil: there is nothing left. What it
// returned before is not valid after that.
func (r *Receiver) NextAck() *ack.Acknowledgement {
	if a := r.log.take(&r.acks); a != nil || !r.hasUpTo {
		return a
	}
	r.hasUpTo = false
	return r.log.cumulative(r.upTo)
}

// TakeSizes returns the length of the longest PROBE that came, and of the longest one of ours that arrived at the peer, since it was called; 0:
// none.
func (r *Receiver) TakeSizes() (longest, confirmed int) {
	longest, confirmed = r.longest, r.confirmed
	r.longest, r.confirmed = 0, 0
	return longest, confirmed
}
