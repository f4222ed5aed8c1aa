package admission

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
	"github.com/dgrdma/dgrdma/transport"
)

// Reason says why a frame of an unknown source is refused.
type Reason uint8

const (
	NotRefused Reason = iota
	WrongDestination
	UnknownSource // it has no id, does not ask for a session, or such sources are not accepted
	Sealed        // and there are no keys here
	NoChecksum    // it ought to have one
	NoSession     // it is of none that there is
	NoRoom        // for another peer
	Reasons       // how many there are
)

// Action is what an endpoint does with a frame of an unknown source.
type Action uint8

const (
	Drop         Action = iota
	TellID              // answer with a REFUSED that names the endpoint's id
	AnswerReset         // answer that there is no such session
	AnswerHello         // answer the frame of the handshake, or begin the session that it confirms
	LearnForeign        // make a connection to a peer without sessions, which acts on the frame
)

// Verdict is what becomes of a frame.
type Verdict struct {
	Do        Action
	Why       Reason          // why it counts as refused, if it does
	Handshake frame.Handshake // of AnswerHello and TellID
}

// Gate decides what an endpoint does with frames of unknown sources.
type Gate struct {
	Policy
	id       frame.EndpointID
	sessions bool // the peers that may be learned have sessions
}

// Init makes g the gate of the endpoint with that id.
func (g *Gate) Init(id frame.EndpointID, sessions bool) { g.id, g.sessions = id, sessions }

// Question is a frame of an unknown source, as far as it bounds the answer.
type Question struct {
	Size    int  // without the checksum
	Checked bool // it had one, which was right
}

// Frame decides on a frame of v1.07. known: under the endpoint's own id there is a connection to its source.
func (g *Gate) Frame(f *frame.Frame, from transport.Addr, q Question, known bool) Verdict {
	switch {
	case f.Dst != g.id:
		return g.forOther(f, from, q, known)
	case isSealed(f):
		return Verdict{Why: Sealed}
	case f.Src == 0, !f.HasMessages(), !g.sessions && !g.Accepts():
		return Verdict{Why: UnknownSource}
	case !g.sessions:
		return Verdict{Do: LearnForeign} // it has nothing to prove itself with
	}
	switch h, ok := f.Handshake(); {
	case ok && h.Checks && !q.Checked:
		return Verdict{Why: NoChecksum}
	case ok:
		return Verdict{Do: AnswerHello, Handshake: h}
	case !g.Accepts():
		return Verdict{Why: UnknownSource}
	}
	return Verdict{Why: NoSession}
}

// forOther decides on a frame to an id that is not the endpoint's. Over UDP an address is one endpoint's, so that the sender of a HELLO is told
// which id is here, if the source would be heard under that: the id 0 is no endpoint's, and asks for it.
func (g *Gate) forOther(f *frame.Frame, from transport.Addr, q Question, known bool) Verdict {
	if f.Dst == 0 && isSealed(f) {
		return Verdict{Why: Sealed} // it asks for the id under a key
	}
	v := Verdict{Why: WrongDestination}
	if from.Kind() != transport.KindUDP || f.Src == 0 || !g.sessions || q.Size < frame.RefusedSize || !g.Accepts() && !known {
		return v
	}
	if h, ok := f.Handshake(); ok && h.Kind == frame.HandshakeHello { // answers are not answered: that would never end
		v.Do, v.Handshake = TellID, h
	}
	return v
}

// SessionFrame decides on a frame of a session that is not known here: this process may have started after it began.
func (g *Gate) SessionFrame(f *frame.SessionFrame) Verdict {
	switch {
	case f.Dst != g.id:
		return Verdict{Why: WrongDestination}
	case f.Src == 0:
		return Verdict{Why: UnknownSource}
	case f.Control == frame.NoControl, f.Control == frame.ControlBell:
		return Verdict{Do: AnswerReset, Why: NoSession}
	}
	return Verdict{Why: NoSession}
}

// isSealed reports whether a frame is what an endpoint sends that seals its connections.
func isSealed(f *frame.Frame) bool { return !f.HasMessages() && f.Flags&datagram.Flag != 0 }
