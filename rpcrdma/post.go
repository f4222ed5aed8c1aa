package rpcrdma

// nextCall posts the next part of a Call.
func (m *Machine) nextCall(room int, a *Action) bool {
	r := &m.req
	for m.mayMakeCalls() {
		o := r.sending
		if o == nil {
			if r.first == len(r.queue) || !m.credits.mayCall() {
				return false
			}
			o = r.queue[r.first]
		}
		if !m.credits.maySend(kindCall) {
			return false
		}
		if o.state != callQueued && o.of == nil {
			return m.endParts(room, o, a)
		}
		ok, err := m.prepare(o)
		if err == nil && ok {
			return m.postCall(room, o, a)
		}
		if err == nil {
			return false
		}
		if o.state != callQueued {
			m.giveBack(o, err) // endParts follows
			continue
		}
		r.unqueue(o)
		m.finish(o, err)
	}
	return false
}

// prepare has a Call ready for its next part.
func (m *Machine) prepare(o *call) (ok bool, err error) {
	if o.head == nil {
		if ok, err = m.plan(o); !ok || err != nil {
			return ok, err
		}
	}
	if m.isLastPart(o) {
		return m.lend(o)
	}
	return true, nil
}

// isLastPart reports whether what is left of a Call goes with its lists.
func (m *Machine) isLastPart(o *call) bool {
	return o.special || m.callHeaderSize(o)+len(o.head)-o.sent <= m.threshold()
}

// postCall posts the next part of a Call: its last one, or its only one, with the lists (RPC2-057).
func (m *Machine) postCall(room int, o *call, a *Action) bool {
	r := &m.req
	if !m.isLastPart(o) {
		h := Header{XID: o.xid, Version: Version2, Type: TypeMsg, Flags: FlagMore}
		n := min(len(o.head)-o.sent, m.threshold()-m.headerSize(0, 0, 0))
		if !m.postMessage(room, a, kindPart, &h, o.head[o.sent:][:n]) {
			return false
		}
		o.sent += n
		if o.state == callQueued {
			r.begin(m, o)
		}
		o.state, r.sending = callSending, o
		return true
	}
	h := m.callHeader(o)
	payload := o.head[o.sent:]
	if o.special {
		payload = nil
	}
	if !m.postMessage(room, a, kindCall, &h, payload) {
		return false
	}
	if o.state == callQueued {
		r.begin(m, o)
	}
	o.state, r.sending, o.head = callSent, nil, nil
	if !o.special {
		m.put(o.flat)
		o.flat = nil
	}
	return true
}

// endParts ends a message that is given up with an empty part: the next Call's parts would otherwise be taken for more of it. It
// must not be carried out. The beginning of a message never is one: so XDR is made. But if the place of an item that is reduced has
// been passed, what was sent is no beginning, and the last part is one that the peer has to refuse.
func (m *Machine) endParts(room int, o *call, a *Action) bool {
	h := Header{XID: o.xid, Version: Version2, Type: TypeMsg}
	if o.reads > 0 && o.sent > int(o.chunks[0].position) {
		h.InvHandle = 1 // which is in no list: BAD_XDR (RPC2-064)
	}
	if !m.postMessage(room, a, kindCall, &h, nil) {
		return false
	}
	m.req.sending, o.head = nil, nil
	if o.state == callAnswered {
		m.finish(o, nil)
		return true
	}
	o.state = callSent
	return true
}
