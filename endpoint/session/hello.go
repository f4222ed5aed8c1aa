package session

// Welcomes returns the answer to a HELLO that initiator sent to whoever is at this address, and that is not acted on: a WELCOME as this state has one,
// or nothing.
func (m *Machine) Welcomes(e Epochs, initiator Epoch) (f Frame, ok bool) {
	local := e.Told()
	switch {
	case m.kept, m.open() && (initiator == m.Remote || m.State == Up && m.KeepRemote), m.rejected.has(initiator):
		return Frame{}, false
	case m.State == Up:
		local = e.Next()
	case m.State >= Asking:
		local = m.Local
	}
	return welcome(local, initiator, e), true
}

func helloDown(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	if !m.kept {
		o.Reply = welcome(e.Told(), f.Sender, e)
	}
}

// Both endpoints ask: the peer is answered with the epoch under which this one asks, so that one pair comes of it.
//
// Both endpoints may have rejected the pair, as the network changed a frame of each. With that pair both would ask for ever: the endpoint with the
// lower epoch takes another. Nothing of its attempt was sent, so nothing of it fails.
func helloAsking(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if m.rejected.has(f.Sender) && m.Local < f.Sender {
		e.End()
		m.ask(at, e, o)
		return
	}
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
