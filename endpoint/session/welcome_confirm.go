package session

func welcomeAsking(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Receiver != m.Local || f.Sender == 0 || m.rejected.has(f.Sender) {
		return
	}
	m.State, m.Remote, m.check, m.Refused = Confirming, f.Sender, f.Check, false
	m.retry = retry{trip: at.Trip}
	m.retry.begin(at.Now, at.answer())
	o.Begins = true
	m.confirm(at, o)
}

func confirmDown(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	switch {
	case !e.IsTold(f.Receiver) || !f.valid(e):
		o.Reply = f.rejection()
	case !m.kept: // else it may yet be a session: the program may ask under this epoch
		m.begin(f.Receiver, f.Sender, o)
	}
}

func confirmAsking(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	if f.Receiver == m.Local && !m.rejected.has(f.Sender) && f.valid(e) {
		m.begin(f.Receiver, f.Sender, o)
	} else {
		o.Reply = f.rejection()
	}
}

// The peer may be another process than the one that sent WELCOME: then that CONFIRM is rejected, and the
// machine asks again under the same epoch, which the other process's CONFIRM names. Until then that one is neither taken nor rejected.
func confirmConfirming(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	switch {
	case f.Receiver != m.Local || m.rejected.has(f.Sender) || !f.valid(e):
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
