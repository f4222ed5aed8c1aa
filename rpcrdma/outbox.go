package rpcrdma

// outgoing is a message that this side sends, besides its Calls.
type outgoing struct {
	kind   kind
	in     *Incoming // of a Reply
	xid    uint32    // of an ERROR or CONNPROP
	report Report    // of an ERROR
	// version is that of the layout of an ERROR.
	version uint32
}

// outbox is the messages that this side sends, in order. A message of several works is posted as far as there is room, then the
// rest; no other one of the outbox comes in between.
type outbox struct {
	list  []outgoing
	first int
	// calls says that it is the turn of a Call: Sends of Replies and of Calls take turns where both can go. The peer waits for the next part of
	// either for a bounded time, so a long Reply must not hold up a Call that has begun.
	calls bool
}

// mostOutgoing is how many messages an outbox has at most. A Reply is to one of at most Window Calls, and malformed messages
// are counted.
func (m *Machine) mostOutgoing() int { return 2*m.cfg.Window + maxMalformed }

func (q *outbox) len() int { return len(q.list) - q.first }

func (q *outbox) shift() {
	q.list[q.first] = outgoing{}
	if q.first++; q.first == len(q.list) {
		q.list, q.first = q.list[:0], 0
	}
}

func (q *outbox) lost() { *q = outbox{} }

// send has a message follow those in the outbox.
func (m *Machine) send(o outgoing) {
	if m.out.len() >= m.mostOutgoing() {
		m.close(ErrProtocol)
		return
	}
	m.out.list = append(m.out.list, o)
}

// sendReply has the Reply to a Call follow: responder.next posts it.
func (m *Machine) sendReply(in *Incoming) { m.send(outgoing{kind: kindReply, in: in}) }

// sendError has an ERROR follow.
func (m *Machine) sendError(version, xid uint32, r Report) {
	m.send(outgoing{kind: kindError, version: version, xid: xid, report: r})
}

// nextMessage posts a work of the next message.
func (m *Machine) nextMessage(room int, a *Action) bool {
	if m.out.calls {
		m.out.calls = false
		if m.nextCall(room, a) {
			return true
		}
	}
	return m.nextOutgoing(room, a) || m.nextCall(room, a) || m.nextRefresh(room, a)
}

// nextOutgoing posts a work of the first message of the outbox.
func (m *Machine) nextOutgoing(room int, a *Action) bool {
	if m.out.len() == 0 {
		return false
	}
	o := m.out.list[m.out.first]
	if o.kind == kindReply {
		posted, done := m.rsp.next(m, room, o.in, a)
		if done {
			m.out.shift()
		}
		m.out.calls = posted && a.Op == OpSend
		return posted
	}
	if !m.nextControl(room, &o, a) {
		return false
	}
	m.out.shift()
	return true
}

// nextControl posts an ERROR or CONNPROP.
func (m *Machine) nextControl(room int, o *outgoing, a *Action) bool {
	h := Header{XID: o.xid, Version: o.version, Type: TypeError, Report: o.report}
	switch {
	case o.kind == kindProperties:
		h.Version, h.Type, h.Properties = Version2, TypeConnProp, m.settle.list
	case h.Version == Version2:
		h.Flags = FlagResponse
	}
	if !m.postMessage(room, a, o.kind, &h, nil) {
		return false
	}
	m.settle.said = m.settle.said || o.kind == kindProperties
	return true
}

// nextRefresh posts a message that only grants credits.
func (m *Machine) nextRefresh(room int, a *Action) bool {
	if m.credits == nil || !m.credits.refreshDue() {
		return false
	}
	return m.postMessage(room, a, kindRefresh, &Header{Version: Version2, Type: TypeNoMsg}, nil)
}

// postMessage posts a Send of a header and payload, which are copied. It sets the word of credits. It reports false,
// and has done nothing, if the peer has no receive for the message, or the pool no buffer.
func (m *Machine) postMessage(room int, a *Action, k kind, h *Header, payload []byte) bool {
	if m.credits != nil && !m.credits.maySend(k) {
		return false
	}
	slot := m.get(h.Size() + len(payload))
	if slot == nil {
		return false
	}
	if m.credits != nil {
		withheld := m.credits.withheld()
		if h.Credit = m.credits.sent(k); withheld && !m.credits.withheld() {
			m.resumeParts()
		}
	} else {
		h.Credit = 1 // an ERR_VERS to a peer of which nothing else is known
	}
	b := append(h.Append(slot.B[:0]), payload...)
	m.post(a, room, OpSend, b, false, work{slot: slot})
	return true
}
