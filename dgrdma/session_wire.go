package dgrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/frame"
)

// sessionWire writes the frames of a session.
type sessionWire struct{ *sessionSending }

// start implements wire.
func (w sessionWire) start(now ack.Instant) {
	w.frames.Restart()
	w.forget(now)
}

// forget implements wire. The ids of the next session are others.
func (w sessionWire) forget(now ack.Instant) { w.initSent(now) }

// firstTimeout is when a frame is sent again on a path of which nothing is known (RFC 6298 section 2.1).
const firstTimeout = time.Second

// initSent begins with the ids of the session, of which none has left.
func (n *sessionSending) initSent(now ack.Instant) {
	p := &n.terms.profile
	var first time.Duration
	if n.terms.routed {
		first = firstTimeout
	}
	n.frames.Number(now, ack.FlightConfig{
		Epoch: uint32(n.m.Local), Window: p.Window, Far: n.terms.farWindow(), MinRTO: p.MinTimeout, FirstRTO: first, MaxRTO: n.mostTimeout(),
		AckDelay: p.PeerAckDelay, AckEvery: p.PeerAckEvery, Marks: n.terms.marks, GiveUp: n.terms.cfg.GiveUp,
		Random: n.terms.cfg.Entropy,
	}, n.ctl)
}

// resume implements wire: ids begin with the session.
func (w sessionWire) resume(ack.Instant, frame.Seq) {}

func (w sessionWire) settle(ack.Instant, uint32) bool         { return false }
func (w sessionWire) buildProbe(*outgoing.Batch, ack.Instant) {}

// head implements wire.
func (w sessionWire) head(b []byte, id uint32, copied uint8) (carried bool) {
	return w.frames.Head(b, id, copied)
}

// headAgain implements wire.
func (w sessionWire) headAgain(b []byte, _ uint32, copied uint8) (carried bool) {
	return w.frames.HeadAgain(b, copied)
}

// run implements wire.
func (w sessionWire) run(id uint32, m *frame.Message) frameRun { return w.frames.Run(id, m) }
