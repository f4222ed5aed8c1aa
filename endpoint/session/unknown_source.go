package session

// Answer acts on a frame of an unknown source: state None. It keeps nothing. takes: the frame begins a session, and
// m is the machine of it, in state Up.
func Answer(at At, e Epochs, f *Frame, refusal Refusal) (m Machine, o Output, takes bool) {
	refused := Frame{Kind: Refused, Sender: f.Sender, Receiver: f.Sender, Refusal: refusal}
	switch f.Kind {
	case Hello:
		if o.Reply = refused; at.Takes {
			o.Reply = welcome(e.Told(), f.Sender, e)
		}
	case Confirm:
		switch {
		case !e.IsTold(f.Receiver) || !f.valid(e):
			o.Reply = f.rejection()
		case at.Takes:
			m.begin(f.Receiver, f.Sender, &o)
			return m, o, true
		default: // The pair may yet be a session: a program may take it, or connect, under this epoch.
			o.Reply = refused
		}
	}
	o.Foreign = o == Output{} || o.Reply.Kind == Reject
	return m, o, false
}
