package session

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
