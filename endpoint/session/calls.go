package session

// Connect asks for a session, and for another one whenever it ends. While there is one, which the peer began, it remains.
func (m *Machine) Connect(at At, e Epochs) (o Output) {
	m.Connected = true
	if m.State <= Down {
		m.ask(at, e, &o)
	}
	return o
}

// Restart ends the session or the attempt, and asks for another one.
func (m *Machine) Restart(at At, e Epochs) (o Output) {
	m.end(e, WasReset, &o)
	if m.Connected {
		m.ask(at, e, &o)
	}
	return o
}

// GiveUp ends the session or the attempt because the peer does not answer. The state is Down until the program or the
// peer asks for another one.
func (m *Machine) GiveUp(e Epochs) (o Output) {
	refused, why := m.Refused, m.Refusal
	switch m.State {
	case Asking:
		m.end(e, NoAnswer, &o)
	case Confirming, Up:
		m.end(e, PeerSilent, &o)
	}
	m.Refused, m.Refusal = refused, why
	return o
}

// Close ends the session, and tells the peer. The state is None.
func (m *Machine) Close(e Epochs) (o Output) {
	if m.open() {
		o.Reply = Frame{Kind: Bye, Sender: m.Local, Receiver: m.Remote}
	}
	m.Connected, m.KeepRemote, m.kept = false, false, false
	m.end(e, WasClosed, &o)
	return o
}
