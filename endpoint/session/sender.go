package session

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// Sender writes the frames of a session, and knows which of them wait for acknowledgement. It is guarded by the connection's lock.
type Sender struct {
	flight      ack.Flight
	local, peer frame.EndpointID
	tag         uint32 // of the session, or of the last one
	pending     pendingAck
	run         frame.SessionRun // being written
}

// Init makes s the sender of frames from the endpoint that is local to the peer. There is no session.
func (s *Sender) Init(local, peer frame.EndpointID) { *s = Sender{local: local, peer: peer} }

// Begin begins a session, of which nothing has left.
func (s *Sender) Begin(m *Machine) {
	s.tag = m.Tag()
	s.pending = pendingAck{
		upTo: uint32(m.Remote), ranges: s.pending.ranges[:0], echo: ack.Echo{ID: uint32(m.Remote), Delay: time.Hour},
	}
}

// Restart forgets what is to be acknowledged, of whatever session.
func (s *Sender) Restart() { s.pending = pendingAck{ranges: s.pending.ranges[:0]} }

// Number begins with ids after an epoch, that of cfg: nothing is in flight.
func (s *Sender) Number(now ack.Instant, cfg ack.FlightConfig, ctl ack.Controller) {
	s.flight.Init(now, cfg, ctl)
}

// Flight returns the frames that wait for acknowledgement.
func (s *Sender) Flight() *ack.Flight { return &s.flight }

// Header returns that of a frame of the session, which has no id and no checksum so far.
func (s *Sender) Header(control frame.Control) frame.SessionHeader {
	return frame.SessionHeader{Dst: s.peer, Src: s.local, Tag: s.tag, Ack: s.pending.upTo, Control: control}
}

// Head writes the header of a frame with messages, and reports whether it takes along all that is to be acknowledged.
func (s *Sender) Head(b []byte, id uint32, copied uint8) (carried bool) {
	h := s.Header(frame.NoControl)
	h.ID, h.Copy = id, copied
	h.Put(b)
	return s.Piggyback()
}

// HeadAgain makes the header of a kept frame that of another copy. It reports the same.
func (s *Sender) HeadAgain(b []byte, copied uint8) (carried bool) {
	frame.PutSessionAck(b, s.pending.upTo)
	frame.PutCopy(b, copied)
	return s.Piggyback()
}

// Run returns what writes the headers of frames that go on where one ended: the frame with that id, which had message m alone.
func (s *Sender) Run(id uint32, m *frame.Message) *frame.SessionRun {
	h := s.Header(frame.NoControl)
	h.ID = id
	s.run.Begin(&h, m)
	return &s.run
}

// PutBye writes the frame that ends a session, and returns how long it is.
func (s *Sender) PutBye(b []byte, f Frame) int {
	h := s.Header(frame.ControlBye)
	return frame.PutBye(b, &h, frame.Bye{Sender: uint32(f.Sender), Receiver: uint32(f.Receiver)})
}
