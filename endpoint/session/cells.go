package session

import "slices"

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
	if c := cells[f.Kind][m.State]; c != nil {
		c(m, at, e, f, &o)
	}
	return o
}

// Arrived notes that a frame of the session arrived: one for which [Machine.Has] is true.
func (m *Machine) Arrived(at At) (o Output) {
	m.rise(at, &o)
	return o
}

func helloDown(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	o.Reply = welcome(e.Told(), f.Sender, e)
}

// Both endpoints ask: the peer is answered with the epoch under which this one asks, so that one pair comes of it.
func helloAsking(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	o.Reply = welcome(m.Local, f.Sender, e)
}

// Of another epoch the peer may be a later process than the one that sent WELCOME, or an earlier one. It hears the epoch
// of this attempt, as in Asking: if another were told here both sides could pursue each other's last epoch for ever.
func helloConfirming(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Sender == m.Remote {
		m.confirm(at, o)
	} else {
		o.Reply = welcome(m.Local, f.Sender, e)
	}
}

// The epoch of the session itself would let an old CONFIRM into it. A HELLO of the peer's epoch was sent before the session was up.
func helloUp(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	if f.Sender != m.Remote && !m.KeepRemote {
		o.Reply = welcome(e.Next(), f.Sender, e)
	}
}

func welcomeAsking(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Receiver != m.Local || f.Sender == 0 || m.isDead(f.Sender) {
		return
	}
	m.State, m.Remote, m.check = Confirming, f.Sender, f.Check
	m.retry = retry{at: at.Now.Add(firstRetry), wait: firstRetry}
	o.Begins = true
	m.confirm(at, o)
}

func confirmDown(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	if e.IsTold(f.Receiver) && f.valid(e) {
		m.begin(f.Receiver, f.Sender, o)
	} else {
		o.Reply = f.rejection()
	}
}

func confirmAsking(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	if f.Receiver == m.Local && !m.isDead(f.Sender) && f.valid(e) {
		m.begin(f.Receiver, f.Sender, o)
	} else {
		o.Reply = f.rejection()
	}
}

// The peer may be another process than the one that sent WELCOME: then that CONFIRM is rejected, and the
// machine asks again under the same epoch, which the other process's CONFIRM names. Until then that one is neither taken nor rejected.
func confirmConfirming(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	switch {
	case f.Receiver != m.Local || m.isDead(f.Sender) || !f.valid(e):
		o.Reply = f.rejection()
	case f.Sender == m.Remote:
		m.rise(at, o)
		o.Reply = Frame{Kind: Ack, Sender: m.Local, Receiver: m.Remote}
	}
}

func confirmUp(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	switch {
	case f.Receiver == m.Local && f.Sender == m.Remote: // again
		o.Reply = Frame{Kind: Ack, Sender: m.Local, Receiver: m.Remote}
	case !m.KeepRemote && e.IsNext(f.Receiver) && f.valid(e):
		m.end(e, PeerRestarted, o)
		m.begin(f.Receiver, f.Sender, o)
	default:
		o.Reply = f.rejection()
	}
}

// The epoch of this side was in no session that the peer had, so it remains: if it changed here, two endpoints that
// both ask could reject each other for ever. The pair is dead. What was sent already cannot be
// told apart from what the peer has applied, and fails.
func rejectConfirming(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Sender != m.Local || f.Receiver != m.Remote {
		return
	}
	local, dead := m.Local, m.dead
	n := slices.Index(dead[:], 0)
	if n < 0 {
		m.lost(at, e, o)
		return
	}
	dead[n] = m.Remote
	if at.Next != uint32(m.Local)+1 {
		o.Ended = PeerRestarted
	}
	m.become(Asking)
	m.Local, m.dead = local, dead
	m.hello(at, o)
}

func rejectUp(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Sender == m.Local && f.Receiver == m.Remote {
		m.lost(at, e, o)
	}
}

func refusedAsking(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Receiver == m.Local && f.Refusal == WrongID {
		m.end(e, OtherID, o)
		return
	}
	refusedConfirming(m, at, e, f, o)
}

func refusedConfirming(m *Machine, _ At, _ Epochs, f *Frame, _ *Output) {
	if f.Receiver == m.Local {
		m.Refused, m.Refusal = true, f.Refusal
	}
}

// Data has overtaken the CONFIRM, or the CONFIRM is lost.
func resetConfirming(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.QuotedTag == m.Tag() && (m.retry.last == 0 || at.Now.Sub(m.retry.last) >= firstRetry) {
		m.confirm(at, o)
	}
}

// What left in state Confirming may have overtaken the CONFIRM: its RESET says nothing of now, and the peer is asked.
func resetUp(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	switch {
	case f.QuotedTag != m.Tag() || int32(at.Next-f.ID) <= 0:
	case int32(f.ID-m.UpID) >= 0:
		m.lost(at, e, o)
	default:
		o.Bell = true
	}
}

func bye(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	if f.Sender == m.Remote && f.Receiver == m.Local {
		m.end(e, PeerClosed, o)
	}
}
