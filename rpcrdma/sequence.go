package rpcrdma

import "time"

// A Call of version 2 may come in several messages. Their parts come one after the other, and only the last one has lists. An ERROR, a
// CONNPROP or a refresh may be between them (RPC2-106).

// partOf takes a message if it is a part of a sequence, or breaks one. It reports false for a Call that is complete by
// itself.
func (r *responder) partOf(m *Machine, now time.Time, h *Header, payload []byte, b *Buffer) bool {
	more := h.Flags&FlagMore != 0
	if r.dropping && h.XID == r.droppedXID && h.Type == TypeMsg { // RPC2-084
		r.dropping = more
		m.put(b)
		return true
	}
	in := r.collecting
	switch {
	case in != nil && (h.XID != in.XID || h.Type != TypeMsg): // RPC2-056
		m.put(b)
		m.countMalformed(now)
		m.sendError(Version2, h.XID, Report{Code: CodeInvalCont})
		if h.XID == in.XID {
			r.abandon(m, true)
		} else if more {
			r.dropping, r.droppedXID = true, h.XID
		}
		return true
	case in == nil && !more:
		return false
	case in == nil:
		if in = r.begin(m, now, h); in == nil {
			m.put(b)
			r.dropping, r.droppedXID = true, h.XID
			return true
		}
		r.collecting = in
	}
	if len(payload) > 0 {
		in.since = now // an empty part is no progress
	}
	switch need := in.length + len(payload); {
	case need > m.cfg.MaxCall: // RPC2-104
		r.collecting, r.dropping, r.droppedXID = nil, more, in.XID
		if in.buffer == nil {
			in.buffer, in.Message = b, payload
		} else {
			m.put(b)
			in.Message = in.buffer.B[:in.length]
		}
		in.deliverLong(m, need)
		return true
	case !r.collect(m, in, payload):
		m.put(b)
		m.sendError(Version2, in.XID, Report{Code: CodeSystem})
		r.abandon(m, more)
		return true
	}
	m.put(b)
	if !more {
		r.collecting = nil
		in.Message = in.buffer.B[:in.length]
		r.complete(m, now, in, h)
	}
	return true
}

// collect adds a part. It reports false if the pool has no memory for it: what comes cannot be told to wait.
func (r *responder) collect(m *Machine, in *Incoming, part []byte) bool {
	need := in.length + len(part)
	if in.buffer == nil || need > len(in.buffer.B) {
		b := m.get(min(max(2*need, 4*DefaultThreshold2), m.cfg.MaxCall))
		if b == nil {
			return false
		}
		if in.buffer != nil {
			copy(b.B, in.buffer.B[:in.length])
			m.put(in.buffer)
		}
		in.buffer = b
	}
	copy(in.buffer.B[in.length:], part)
	in.length = need
	return true
}

// abandon lets go of the Call that is collected. If more parts follow they are dropped.
func (r *responder) abandon(m *Machine, more bool) {
	in := r.collecting
	r.collecting = nil
	r.dropping, r.droppedXID = more, in.XID
	r.forget(in)
	r.release(m, in)
}

// brokenBy handles a message that the Decoder has refused and that is of a sequence. It reports whether no answer is
// wanted.
func (r *responder) brokenBy(m *Machine, f *Fault, h *Header) bool {
	more := h.Flags&FlagMore != 0
	switch {
	case h.Type != TypeMsg && f.Report.Code != CodeInvalCont:
		return false
	case r.dropping && f.XID == r.droppedXID:
		r.dropping = more
		return true
	case r.collecting != nil && f.XID == r.collecting.XID:
		r.abandon(m, more)
	case more:
		r.dropping, r.droppedXID = true, f.XID
	}
	return false
}

// resumeParts gives the peer the whole time for its next part again: until now it had no credit to send one.
func (m *Machine) resumeParts() {
	now := m.rsp.now
	if in := m.rsp.collecting; in != nil {
		in.since = now
	}
	if s := &m.req.sequence; s.on {
		s.deadline = now.Add(m.cfg.PartTime)
	}
}
