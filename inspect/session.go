package inspect

import (
	"math/bits"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// mostTags is how many sessions of a flow are remembered, of which the network may have held frames back. Arbitrary.
const mostTags = 8

// epochs are those of both ends of a session, as one of them names them.
type epochs struct{ mine, theirs uint32 }

// turned are they as the other end names them.
func (e epochs) turned() epochs { return epochs{e.theirs, e.mine} }

// tag is what the session's frames have that the end sends which has these epochs.
func (e epochs) tag() uint32 { return e.theirs ^ bits.RotateLeft32(e.mine, 16) }

// following is the session whose frames a flow has, and what became of those before.
type following struct {
	any    bool
	tag    uint32
	tags   []uint32 // of sessions before, at most mostTags
	fresh  bool     // none of its frames with an id was seen
	now    epochs   // of this session, if its handshake is in the capture
	paired bool     // it is
	pair   epochs   // of the handshake that the sender took part in last
	met    bool     // there was one
	own    []uint32 // epochs that the sender named as its own in handshakes, at most mostTags
	odd    uint32   // the tag of the last frame, if that is of no session that is known
	oddly  bool     // there is such a tag
	all    []Session
	n      int

	ack     sameAck // that was sent last
	covered bool    // the other end acknowledged all up to upTo
	upTo    ack.Wide
	looks   int      // how many slots may be looked at
	early   struct { // what the other end acknowledged before the first frame of this session in the capture
		upTo ack.Wide
		tag  uint32 // of the other end's frames
		is   bool
	}

	stale, strange    counted // frames of sessions that ended, and of unknown ones
	unseen            int     // transmissions before the first that is in the capture
	lost              int     // transmissions that did not come before a later one of their id, as the receiver says
	vain              int     // retransmissions of what had come, as the receiver says
	trips             histogram
	resets            counted // RESETs that quote a frame of this flow
	quoted            slot    // the frame that the first one quotes, if it is known
	byes              counted // that this end sent
	probes, answers   int     // PROBEs and PROBEDs that this end sent
	rejects, refusals counted
	why               uint8 // of the first refusal
}

// Session is a pair of epochs of two endpoints of our kind, in which one of them sends.
type Session struct {
	Tag      uint32 `json:"tag"`                // of the frames of this direction
	Sender   uint32 `json:"sender,omitempty"`   // epoch; 0: its handshake is not in the capture
	Receiver uint32 `json:"receiver,omitempty"` // likewise

	Record     int           `json:"record"` // its first frame
	At         time.Duration `json:"at_ns"`
	LastRecord int           `json:"last_record"`
	Frames     int           `json:"frames"`
	Ended      string        `json:"ended,omitempty"` // "BYE", "RESET": as the capture shows it
	own        bool          // the sender said so
}

// inSession takes a frame of a session.
func (a *Analyzer) inSession(p *captured.Packet, s *seen) {
	h, ok := p.SessionHeader()
	if p.Cut() {
		a.capture.Cut++
	} else if b, sum := p.Whole(); sum == frame.WrongChecksum {
		a.changed(p)
		return
	} else if s.session.Decode(b) != nil {
		ok = false
	}
	if !ok && p.Cut() {
		a.headless++
		return
	}
	if !ok || h.Src == 0 || h.Dst == 0 {
		a.malformed(p)
		return
	}
	s.inSession, s.head = true, h
	s.Header = frame.Header{Dst: h.Dst, Src: h.Src, Seq: frame.Seq(h.ID)}
	if h.Control == frame.NoControl {
		s.Flags = frame.FlagMessages
	}
	a.messagesOf(p, s)
	k := flowKey{p.Src, p.Dst, s.Src, s.Dst}
	a.unsealed(k, s)
	f := a.flow(k, s)
	if f == nil {
		a.unfollow(p.Record)
		return
	}
	if f.reverse == nil {
		f.reverse = a.reverse(k)
	}
	f.addSession(s)
	a.reads(f, p, s)
	if !s.numbered() {
		a.joined.flow = nil // no ids follow from its own
	}
	f.heardOf(s, false)
}

// numbered reports whether a frame of a session has an id of its own.
func (s *seen) numbered() bool {
	return s.head.Control == frame.NoControl || s.head.Control == frame.ControlBell
}

// addSession takes a frame of a session.
func (f *flow) addSession(s *seen) {
	f.frames++
	f.wire += int64(s.wire)
	if s.cut {
		f.cuts++
	}
	f.last, f.lastRecord = max(f.last, s.at), s.record
	defer func() { f.spoke = max(f.spoke, s.at) }()
	if s.head.Control == frame.ControlReset {
		f.alone++
		f.reverse.resetBy(s)
		return
	}
	follows := f.follows(s)
	switch {
	case s.numbered():
		f.withMessages++
		f.messages += int64(len(s.messages))
		f.data += s.data
		if s.cut {
			f.cut++
		}
		if s.HasMessages() && len(s.messages) == 0 { // cut before its first message: there is nothing to tell it by
			f.a.headless++
			f.headless(s)
		} else if follows {
			resent := f.resent
			f.inOrder(s)
			f.waits(s, f.resent > resent)
		}
	case s.head.Control == frame.ControlAck:
		f.alone++
		f.acksAlone++
		f.acksSent++
		f.sentOnce(s)
		if said, ok := s.session.SessionAck(); ok {
			for i := range said.Ranges.Len() {
				f.acksSent += int64(said.Ranges.At(i).Count)
			}
		}
	default:
		f.alone++
		f.controls(s)
	}
	if follows {
		f.reverse.covered(s, f)
	}
}

// sentOnce takes an ACK. No endpoint sends the same one twice in sequence, since it tells how long ago the last frame came; a capture at two places has each twice.
func (f *flow) sentOnce(s *seen) {
	said, ok := s.session.SessionAck()
	if !ok {
		return
	}
	now := sameAck{s.head, said.Again, said.Copy, said.Delay, said.Ranges.Len()}
	if now == f.session.ack {
		f.othersAgain++
	} else {
		f.others++
	}
	f.session.ack = now
}

// sameAck is what tells one ACK from the next.
type sameAck struct {
	head   frame.SessionHeader
	again  bool
	copied uint8
	delay  int
	ranges int
}

// controls counts control frames that acknowledge nothing else.
func (f *flow) controls(s *seen) {
	x := &f.session
	switch s.head.Control {
	case frame.ControlBye:
		x.byes.add(1, s.record)
		x.ends("BYE", true)
		if r := f.reverse; r != nil && x.with(&r.session) {
			r.session.ends("BYE", false)
		}
	case frame.ControlProbe:
		x.probes++
	case frame.ControlProbed:
		x.answers++
	}
}

// ends notes how the present session ended, and whether the sender of this direction said so: what is told first counts.
func (x *following) ends(how string, own bool) {
	if x.any && x.n <= len(x.all) && x.n > 0 && x.all[x.n-1].Ended == "" {
		x.all[x.n-1].Ended, x.all[x.n-1].own = how, own
	}
}

// resetBy notes that the other end answered a frame of f with a RESET: it does not have the session.
func (f *flow) resetBy(s *seen) {
	if f == nil || !f.session.any || s.head.Tag != f.session.tag {
		return // of a session that ended: its sender ignores it, too
	}
	x := &f.session
	if x.resets.add(1, s.record); x.resets.n == 1 {
		if w := f.ids.known(ack.Wide(s.head.ID)); w != nil && w.state == slotMessage && !x.fresh {
			x.quoted = *w
		}
	}
	x.ends("RESET", false)
}

// follows reports whether a frame is of the session that f is in by now. A tag that no handshake in the capture has is believed when
// two frames in sequence have it: the network may have held one back from a session that ended before the capture began.
func (f *flow) follows(s *seen) bool {
	x := &f.session
	switch tag := s.head.Tag; {
	case x.any && tag == x.tag:
		x.oddly = false
		if x.n <= len(x.all) {
			t := &x.all[x.n-1]
			t.Frames++
			t.LastRecord = s.record
		}
		return true
	case slices.Contains(x.tags, tag):
		x.stale.add(1, s.record)
		return false
	case !x.any, f.agreed(tag), x.oddly && x.odd == tag:
		f.beginSession(s)
		return true
	default:
		x.odd, x.oddly = tag, true
		x.strange.add(1, s.record)
		return false
	}
}

// agreed reports whether the latest handshake in the capture is of the session whose frames have that tag.
func (f *flow) agreed(tag uint32) bool {
	_, ok := f.pairOf(tag)
	return ok
}

// with reports whether this is the same session as what the other end sends in.
func (x *following) with(other *following) bool {
	switch {
	case x.paired:
		return x.now.turned().tag() == other.tag
	case other.paired:
		return other.now.turned().tag() == x.tag
	}
	return true // as far as can be told
}

// pairOf returns the epochs of the session with that tag, if its handshake is in the capture.
func (f *flow) pairOf(tag uint32) (e epochs, ok bool) {
	if x := &f.session; x.met && x.pair.tag() == tag {
		return x.pair, true
	}
	if r := f.reverse; r != nil && r.session.met {
		if e := r.session.pair.turned(); e.tag() == tag {
			return e, true
		}
	}
	return epochs{}, false
}

// beginSession begins to follow another session.
func (f *flow) beginSession(s *seen) {
	x := &f.session
	if x.any {
		if len(x.tags) == mostTags {
			x.tags = slices.Delete(x.tags, 0, 1)
		}
		x.tags = append(x.tags, x.tag)
	}
	f.close()
	f.tx.settleAll()
	f.strays.n = 0
	f.anyAcked = false
	x.now, x.paired = f.pairOf(s.head.Tag)
	x.any, x.tag, x.fresh, x.oddly, x.covered = true, s.head.Tag, true, false, false
	if x.n++; len(x.all) < mostRestart {
		x.all = append(x.all, Session{
			Tag: x.tag, Sender: x.now.mine, Receiver: x.now.theirs, Record: s.record, At: s.at, LastRecord: s.record, Frames: 1,
		})
	}
}

// shakes takes a frame of the handshake for a session. It has no id.
func (f *flow) shakes(s *seen) {
	x := &f.session
	switch s.shake.Kind {
	case frame.HandshakeWelcome, frame.HandshakeConfirm:
		x.pair, x.met = epochs{s.shake.Sender, s.shake.Receiver}, true
	case frame.HandshakeReject:
		x.rejects.add(1, s.record)
	case frame.HandshakeRefused:
		if s.refused && s.refusal.Why != 0 {
			if x.refusals.add(1, s.record); x.refusals.n == 1 {
				x.why = s.refusal.Why
			}
		}
	}
	if s.shake.Kind.HasServices() && x.isNewest(s.shake.Sender) {
		f.services, f.told = s.services, s.told
	}
}

// isNewest notes an epoch that an end names as its own, and reports whether that is the newest one. The network may hold back others.
func (x *following) isNewest(epoch uint32) bool {
	if i := slices.Index(x.own, epoch); i >= 0 {
		return i == len(x.own)-1
	}
	if len(x.own) == mostTags {
		x.own = slices.Delete(x.own, 0, 1)
	}
	x.own = append(x.own, epoch)
	return true
}
