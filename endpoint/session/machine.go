package session

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// State is the state of the session with a peer.
type State uint8

const (
	None State = iota
	Down
	Asking
	Confirming
	Up
	states
)

var stateNames = [states]string{"None", "Down", "Asking", "Confirming", "Up"}

func (s State) String() string { return stateNames[s] }

// Why is why a session or an attempt ended.
type Why uint8

const (
	NotEnded      Why = iota
	PeerRestarted     // the peer does not have the session any more, or begins another one
	PeerClosed
	PeerSilent // the peer did not answer for the time to give up
	NoAnswer   // the same, of a peer that has never answered; [Machine.Refusal] may say why
	OtherID    // the endpoint at the address has another id
	WasReset   // by the program
	WasClosed  // by the program
)

// At is what a machine is told of its surroundings with each input.
type At struct {
	Now    ack.Instant
	Next   uint32 // the id of the next frame of the session, unused outside of one
	Posted bool   // a program waits for something to be sent
	Takes  bool   // the endpoint takes unknown sources, and has room for one
	// Pause bounds the time between two HELLOs, or CONFIRMs, while something is posted: where a peer is given up soon some have to leave
	// before. 0: mostRetry.
	Pause time.Duration
	// Routed: a router may be on the way, and nothing says that a round trip is short.
	Routed bool
	// Trip is how long the peer took to answer, at most; 0: not known.
	Trip time.Duration
}

// Output is what a machine says after an input.
type Output struct {
	Reply Frame // to be sent now, unless it is NoFrame
	Bell  bool  // an empty frame is to be sent, unless one is under way with an id from UpID on
	// Untaken: the frame whose id the input has arrived before the peer had the session. It is to be sent again in state Up.
	Untaken bool
	// Foreign: the frame is of no session and no attempt that there is, or may begin now. It has changed nothing.
	Foreign bool
	// Ended: a session or an attempt ended. All that is posted fails, and what is held of the peer's transactions is released.
	// Ended is told before what follows in the same output.
	Ended  Why
	Begins bool // a session begins: ids begin after [Machine.Local] in one direction, and after [Machine.Remote] in the other
	Rises  bool // the state is Up, and was not
}

// Machine is one endpoint's side of the sessions with one peer. The caller serializes its methods.
type Machine struct {
	State State
	Local Epoch // in Asking, Confirming and Up
	// Remote is the peer's epoch, in Confirming and Up.
	Remote Epoch
	// UpID is the id of the first frame that left in state Up. The peer has had the session before that.
	UpID uint32
	// Early: frames before UpID left in state Confirming, and wait for acknowledgement as far as is known.
	Early bool
	// Connected: the program connects to the peer. When a session ends the machine asks for
	// another one. Otherwise the peer came by itself, and the state is None then.
	Connected bool
	// KeepRemote: the session is to be with the process of the peer that began it. When it ends there is no other one, whether the peer asks
	// for it or not, until the program does.
	KeepRemote bool
	// Refused: the peer answered REFUSED to the last HELLO or CONFIRM that it answered, with Refusal. There is no session.
	Refused bool
	Refusal Refusal

	kept     bool   // such a session has ended; the state is Down
	check    uint32 // of the WELCOME
	rejected rejectedPairs
	retry    retry
}

// Tag returns the tag of frames that are sent in the session.
func (m *Machine) Tag() uint32 { return Tag(m.Remote, m.Local) }

// Has reports whether a frame with that tag, which the peer sent, is one of the session.
func (m *Machine) Has(tag uint32) bool { return m.open() && tag == Tag(m.Local, m.Remote) }

// open reports whether there is a session, at this side.
func (m *Machine) open() bool { return m.State >= Confirming }

// become takes the machine to a state. Of what it knew only what the program said remains.
func (m *Machine) become(s State) {
	*m = Machine{State: s, Connected: m.Connected, KeepRemote: m.KeepRemote}
}

// ask begins an attempt under an epoch that was never in a session.
func (m *Machine) ask(at At, e Epochs, o *Output) {
	m.become(Asking)
	m.Local = e.Told()
	m.hello(at, o)
}

func (m *Machine) hello(at At, o *Output) {
	o.Reply = Frame{Kind: Hello, Sender: m.Local}
	m.retry.begin(at.Now, at.first())
}

// begin begins a session in state Up, which the peer has shown that it has. That peer is answered.
func (m *Machine) begin(local, remote Epoch, o *Output) {
	m.become(Up)
	m.Local, m.Remote, m.UpID = local, remote, uint32(local)+1
	o.Begins, o.Rises = true, true
	o.Reply = Frame{Kind: Ack, Sender: local, Receiver: remote}
}

// rise notes that the peer has shown that it has the session.
func (m *Machine) rise(at At, o *Output) {
	if m.State == Confirming {
		m.State, m.UpID, m.retry, m.Refused = Up, at.Next, retry{}, false
		m.Early = at.Next != uint32(m.Local)+1
		o.Rises = true
	}
}

// confirm sends a CONFIRM.
func (m *Machine) confirm(at At, o *Output) {
	o.Reply = Frame{Kind: Confirm, Sender: m.Local, Receiver: m.Remote, Check: m.check}
	m.retry.last = at.Now
}

// end ends a session or an attempt. Neither its epoch nor what the peer was told names a session after it.
func (m *Machine) end(e Epochs, why Why, o *Output) {
	if m.State >= Asking {
		e.End()
	}
	kept := m.KeepRemote && (m.open() || m.kept)
	m.become(Down)
	if m.kept = kept; !m.Connected && !kept {
		m.State = None
	}
	o.Ended = why
}

// lost ends a session that the peer does not have, and asks for another one.
func (m *Machine) lost(at At, e Epochs, o *Output) {
	m.end(e, PeerRestarted, o)
	if m.Connected && !m.KeepRemote {
		m.ask(at, e, o)
	}
}

// welcome answers a HELLO of initiator.
func welcome(local, initiator Epoch, e Epochs) Frame {
	return Frame{Kind: Welcome, Sender: local, Receiver: initiator, Check: e.Check(local, initiator)}
}

// valid reports whether f, a CONFIRM, answers a WELCOME of this endpoint.
func (f *Frame) valid(e Epochs) bool { return f.Check == e.Check(f.Receiver, f.Sender) }

// rejection answers a CONFIRM of a pair that can never be a session.
func (f *Frame) rejection() Frame {
	return Frame{Kind: Reject, Sender: f.Sender, Receiver: f.Receiver, Check: f.Check}
}
