package session

// cell is what happens in one state with one frame.
type cell func(m *Machine, at At, e Epochs, f *Frame, o *Output)

// cells is the table of the session: by frame, and by state. Where a cell is empty nothing happens. State None has [Answer].
//
// CONFIRM, REJECT and BYE name a pair of epochs, RESET a tag: what is not of the present session, or of one that may begin,
// changes nothing.
var cells = [kinds][states]cell{
	Hello:   {Down: helloDown, Asking: helloAsking, Confirming: helloConfirming, Up: helloUp},
	Welcome: {Asking: welcomeAsking},
	Confirm: {Down: confirmDown, Asking: confirmAsking, Confirming: confirmConfirming, Up: confirmUp},
	Reject:  {Confirming: rejectConfirming, Up: rejectUp},
	Refused: {Asking: refusedAsking, Confirming: refusedConfirming},
	Reset:   {Confirming: resetConfirming, Up: resetUp},
	Bye:     {Confirming: bye, Up: bye},
}

// Receive acts on a frame of the peer, which the caller has validated as far as the wire format goes.
func (m *Machine) Receive(at At, e Epochs, f *Frame) (o Output) {
	names := m.isNamed(at, f)
	if c := cells[f.Kind][m.State]; c != nil {
		c(m, at, e, f, &o)
	}
	o.Foreign = !names && (o == Output{} || o.Reply.Kind == Reject)
	return o
}

// isNamed reports whether f names the session or the attempt that there is, though it may come late or again.
func (m *Machine) isNamed(at At, f *Frame) bool {
	switch f.Kind {
	case Hello:
		return f.Sender == m.Remote
	case Welcome:
		return f.Receiver == m.Local && (m.State == Asking || f.Sender == m.Remote)
	case Reject:
		return f.Sender == m.Local && f.Receiver == m.Remote
	case Refused:
		return f.Receiver == m.Local
	case Reset:
		return f.QuotedTag == m.Tag() && int32(at.Next-f.ID) > 0
	case Bye:
		return f.Sender == m.Remote && f.Receiver == m.Local
	}
	return false // a CONFIRM of the session is answered
}

// Arrived notes that a frame of the session arrived: one for which [Machine.Has] is true.
func (m *Machine) Arrived(at At) (o Output) {
	m.rise(at, &o)
	return o
}

// Acknowledged notes that all frames before oldest were acknowledged. It is called now and then, within 2^31 frames.
func (m *Machine) Acknowledged(oldest uint32) {
	if m.Early && int32(oldest-m.UpID) >= 0 {
		m.Early = false
	}
}
