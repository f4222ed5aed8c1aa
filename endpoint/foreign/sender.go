package foreign

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

const (
	// ProbeSize is the length of a probe: the least payload of Ethernet. Shorter frames are padded by
	// the link, and an FPGA reads that padding as another header (quirk F3).
	ProbeSize  = 46
	probeOwnID = 20 // where that header has its id: the id of the probe is known there, and refused
)

// leastHold is how long an acknowledgement waits that found no id to travel under.
// Arbitrary: short compared to the time after which a frame is sent again.
const leastHold = time.Millisecond

// Timing is how long a Sender waits.
type Timing struct {
	MaxRTO time.Duration // between two copies of a frame
	GiveUp time.Duration // for a sign of progress
}

// Sender writes frames of DG/RDMA v1.07: their ids have 16 bits, and each acknowledges one run of ids. It is guarded by the
// connection's lock.
type Sender struct {
	profile *Profile
	dst     frame.EndpointID
	src     frame.EndpointID
	timing  Timing
	sender  ack.Sender
	due     ack.PendingAcks
	acking  bool      // acknowledgements are sent to this peer
	mute    bool      // none can leave by itself: the span of ids is used up
	begun   bool      // ids have
	frames  frame.Run // being written
	proof   proof
	proven  bool // the peer counts from our first id on, or need not
	missing deadline
}

// Init makes s the sender of frames from the endpoint that is local to the peer, whose profile p stays as it is.
func (s *Sender) Init(p *Profile, local, peer frame.EndpointID, t Timing) {
	*s = Sender{profile: p, src: local, dst: p.Destination(local, peer), timing: t}
}

// DrawsFirst reports whether Start begins ids at a random one.
func (s *Sender) DrawsFirst() bool { return !s.begun && s.profile.FirstFrame == 0 }

// Start begins with a peer, or begins again: nothing is in flight, and nothing is to be acknowledged to it. random counts where DrawsFirst says so.
func (s *Sender) Start(now ack.Instant, random uint32, ctl ack.Controller) {
	p := s.profile
	first := s.sender.NextWide()
	if !s.begun {
		if first = ack.Wide(p.FirstFrame); first == 0 {
			first = p.begin(ack.Wide(random))
		}
		s.begun = true
	}
	s.number(now, first, ctl)
	s.due.Init(p.AckEvery, p.AckDelay)
	s.acking = p.Acks == AckRepeat || p.Acks == AckOnce
}

// Forget forgets all frames in flight. None of their ids is used again soon.
func (s *Sender) Forget(now ack.Instant, ctl ack.Controller) { s.number(now, s.sender.NextWide(), ctl) }

// Resume begins ids after a Reset that asked for one, or for none: 0.
func (s *Sender) Resume(now ack.Instant, asked frame.Seq, ctl ack.Controller) {
	next := s.sender.NextWide()
	switch {
	case asked != 0:
		next = ack.Wide(asked)
	case s.profile.FirstFrame != 0:
		next = ack.Wide(s.profile.FirstFrame)
	}
	s.number(now, next, ctl)
}

// number forgets all ids and begins at first.
func (s *Sender) number(now ack.Instant, first ack.Wide, ctl ack.Controller) {
	p := s.profile
	s.sender.Init(now, ack.SenderConfig{
		First: first, Window: p.Window, Span: p.Span,
		MinRTO: p.MinTimeout, MaxRTO: s.timing.MaxRTO, MaxBetween: p.mostBetween(), AckDelay: p.PeerAckDelay,
		GiveUp: s.timing.GiveUp, Cumulative: p.Cumulative, OneRun: p.OneRun, FreshAlone: p.FreshAlone, SlotTable: p.SlotTable,
	}, ctl)
	s.proof = proof{from: first.Seq()}
	s.proven = !p.Cumulative || p.FirstFrame == 0
}

// mostBetween is the longest time between two copies of a frame while round trips are shorter. A peer
// that tells copies by the time between them, as this implementation does of such a peer, takes what
// comes later for another life: eight in a row have to be lost before that. OpenCPI's driver itself
// does not look at that time. It may need longer to name what it has, and then copies wait for it.
func (p *Profile) mostBetween() time.Duration {
	if p.NeverRetransmits {
		return 0
	}
	return p.CopyFor / 8
}

// Proven reports whether more than one frame may be on its way.
func (s *Sender) Proven() bool { return s.proven }

// Flight returns the frames that wait for acknowledgement.
func (s *Sender) Flight() Flight { return Flight{&s.sender} }

// Settle counts a frame as acknowledged by a peer that never acknowledges. It reports whether it was in flight.
func (s *Sender) Settle(now ack.Instant, id uint32) bool {
	return s.sender.Settle(now, ack.Wide(id).Seq())
}

// header returns that of our frames to the peer.
func (s *Sender) header(id frame.Seq, run ack.Range) frame.Header {
	return frame.Header{Dst: s.dst, Src: s.src, Seq: id, AckStart: run.Start, AckCount: run.Count}
}

// Head writes the header of a frame with messages, and reports whether it takes an acknowledgement along.
func (s *Sender) Head(b []byte, id uint32, copied uint8) (carried bool) {
	var run ack.Range
	if copied > 0 {
		run = s.dueAgain()
	} else {
		run, _ = s.due.Next()
	}
	h := s.header(frame.Seq(id), run)
	h.Flags = frame.FlagMessages
	h.Put(b)
	return run.Count > 0
}

// HeadAgain makes the header of a kept frame that of another copy. It reports the same.
func (s *Sender) HeadAgain(b []byte) (carried bool) {
	run := s.dueAgain()
	frame.PutAck(b, run.Start, run.Count)
	return run.Count > 0
}

// dueAgain returns what a frame acknowledges that is sent again.
func (s *Sender) dueAgain() (run ack.Range) {
	if !s.profile.FreshAcks || s.mute {
		// A peer that overlooks it in a frame that it knows gets it in a new one,
		// unless there is no id for one. It does not know all of these, and if it is
		// as mute, this is the only way out (A16).
		run, _ = s.due.Next()
	}
	return run
}

// Run returns what writes the headers of frames that go on where one ended: the frame with that id, which had message m alone.
func (s *Sender) Run(id uint32, m *frame.Message) *frame.Run {
	h := s.header(frame.Seq(id), ack.Range{})
	h.Flags = frame.FlagMessages
	s.frames.Begin(&h, m)
	return &s.frames
}

// AckAt returns when an acknowledgement has to leave by itself, if one is due.
func (s *Sender) AckAt() (at ack.Instant, due bool) { return s.due.Deadline() }

// AckID returns the id of a frame that only acknowledges. Not ok: there is none to travel under. What is due rides on the next frame with messages
// then, or comes again with the duplicate.
func (s *Sender) AckID(now ack.Instant) (id frame.Seq, ok bool) {
	id, ok = s.sender.Alone(now)
	if s.mute = !ok; s.mute {
		s.due.Hold(now.Add(max(s.profile.AckDelay, leastHold)))
	}
	return id, ok
}

// PutAck writes that frame to the first bytes of b.
func (s *Sender) PutAck(b []byte, id frame.Seq) {
	run, _ := s.due.Next()
	h := s.header(id, run)
	h.Put(b)
}

// MayProbe reports whether a probe may leave: a frame without messages under a new id. An FPGA acknowledges one,
// and so says what else it has (quirk F2). The probe may lie beyond the window: there
// it is dropped without a trace, and sent again later.
func (s *Sender) MayProbe() bool { return s.sender.MayProbe() }

// PutProbe writes the probe with that id to the ProbeSize bytes of b.
func (s *Sender) PutProbe(b []byte, id uint32) {
	clear(b)
	h := s.header(frame.Seq(id), ack.Range{})
	h.Put(b)
	b[probeOwnID] = byte(id)
	b[probeOwnID+1] = byte(id >> 8)
}

// Deadline returns when the sender is to be asked by Expire.
func (s *Sender) Deadline() (at ack.Instant, armed bool) {
	if s.missing.armed() {
		at, armed = s.missing.at, true
	}
	if t := s.proof.since.Add(doubtFor); s.proof.doubted && (!armed || t < at) {
		at, armed = t, true
	}
	return at, armed
}

// Expire returns how many frames of the peer are given up at this moment, and whether the peer turned out to be a card that goes on from
// an earlier connection.
func (s *Sender) Expire(now ack.Instant) (missed int, stale bool) {
	return s.missing.expire(now), s.proof.doubted && now >= s.proof.since.Add(doubtFor)
}
