package session

func bye(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
	if f.Sender == m.Remote && f.Receiver == m.Local {
		m.end(e, PeerClosed, o)
	}
}
