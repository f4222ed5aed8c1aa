package session

// Data has overtaken the CONFIRM, or the CONFIRM is lost.
func resetConfirming(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.QuotedTag != m.Tag() {
		return
	}
	o.Untaken = int32(at.Next-f.ID) > 0 && int32(f.ID-uint32(m.Local)) > 0
	if m.retry.mayConfirm(at.Now) {
		m.confirm(at, o)
	}
}

// What left in state Confirming may have overtaken the CONFIRM: its RESET says nothing of now, and the peer is asked.
func resetUp(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	switch {
	case f.QuotedTag != m.Tag() || int32(at.Next-f.ID) <= 0:
	case m.Early && int32(f.ID-m.UpID) < 0:
		o.Bell = true
	default:
		m.lost(at, e, o)
	}
}
