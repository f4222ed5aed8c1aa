package rpcrdma

import (
	"fmt"
	"time"
)

// sequence is the parts of a Reply of version 2 that are coming.
type sequence struct {
	on       bool
	xid      uint32
	of       *call // nil: the parts are dropped
	deadline time.Time
}

// received takes a Reply, or a part of one. Nothing of it is used before all of it was held against what the Call
// has offered.
func (r *requester) received(m *Machine, now time.Time, h *Header, payload []byte, b *Buffer, invalidated bool, stag uint32) {
	o := r.find(h.XID)
	more := h.Flags&FlagMore != 0
	if invalidated && (more || o == nil || !o.lends(stag, m.version)) {
		m.close(ErrProtocol) // RPC2-064
		m.put(b)
		return
	}
	if r.sequence.on || more {
		r.part(m, now, o, h, payload)
		m.put(b)
		return
	}
	switch {
	case o == nil:
		r.unmatched++ // ONC-009
		m.put(b)
	case h.Type == TypeMsg && !isReply(payload, h.XID):
		m.countMalformed(now) // RPC1-002, RPC2-066
		m.put(b)
	case h.Type == TypeMsg:
		m.complete(o, h, payload, b)
	default:
		m.complete(o, h, nil, nil)
		m.put(b)
	}
}

// lends reports whether the peer may have withdrawn memory of a tag by the Reply to the Call: in version 1 any, and in version 2
// what the Call said.
func (o *call) lends(stag uint32, version uint32) bool {
	for i := range o.leases {
		if o.leases[i].Live && o.leases[i].Handle == stag {
			return version == Version1 || i == 0
		}
	}
	return false
}

// isReply reports whether an RPC message is a Reply of an XID.
func isReply(message []byte, xid uint32) bool {
	return len(message) >= leastRPC && word(message, 0) == xid && word(message, wordSize) == msgReply
}

// part takes a part of a Reply, the first one of which has begun a sequence (RPC2-046). A message of another XID or type is not one
// (RPC2-056): the Reply that it should have been is lost. A Call whose parts cannot be used fails with the last one: that may
// still withdraw its memory.
func (r *requester) part(m *Machine, now time.Time, o *call, h *Header, payload []byte) {
	s := &r.sequence
	if !s.on {
		*s = sequence{true, h.XID, o, now.Add(m.cfg.PartTime)}
		if o == nil {
			r.unmatched++
		} else if o.state == callSent {
			o.state = callCollecting
		}
	}
	if h.XID != s.xid {
		m.countMalformed(now)
		if o != nil {
			m.end(o, fmt.Errorf("%w: a part of another Reply came before its end", ErrReply))
		}
		return
	}
	if h.Type != TypeMsg {
		m.countMalformed(now)
		if o != nil {
			o.spoiled = true
		}
		return
	}
	if len(payload) > 0 { // an empty part is no progress
		s.deadline = now.Add(m.cfg.PartTime)
	}
	if o = s.of; o != nil && o.of != nil {
		m.collect(o, payload)
	}
	if h.Flags&FlagMore != 0 {
		return
	}
	*s = sequence{}
	if o != nil {
		m.complete(o, h, nil, nil)
	}
}

// collect counts a part of a Reply, and keeps it unless one before was not kept, there are more than Config.MaxReply octets
// (RPC2-104), or the pool has no memory for them.
func (m *Machine) collect(o *call, part []byte) {
	have := o.collected
	o.collected += len(part)
	if o.spoiled = o.spoiled || o.collected > m.cfg.MaxReply; o.spoiled {
		return
	}
	if o.parts == nil || o.collected > len(o.parts.B) {
		b := m.get(min(max(2*o.collected, m.replyThreshold()), m.cfg.MaxReply))
		if b == nil {
			o.spoiled = true
			return
		}
		if o.parts != nil {
			copy(b.B, o.parts.B[:have])
			m.put(o.parts)
		}
		o.parts = b
	}
	copy(o.parts.B[have:], part)
}

// complete ends a Call with its Reply. The message is that of a Send, whose buffer is b; of a Reply chunk; or what was collected.
func (m *Machine) complete(o *call, h *Header, message []byte, b *Buffer) {
	placed, n, ok := m.checkReply(o, h)
	why := "it has no RPC message of the Call"
	if !ok {
		why = m.mismatch(o, h)
	}
	m.withdrawAll(o) // before anything of what the peer wrote is looked at
	c := o.of
	if c == nil {
		m.put(b)
		m.end(o, nil)
		return
	}
	from := &o.reply
	switch {
	case b != nil:
		from = &b
	case h.Type == TypeMsg:
		from, n = &o.parts, o.collected
	}
	if ok = ok && !o.spoiled; ok && b == nil {
		message = (*from).B[:n]
		ok = isReply(message, o.xid)
	}
	if !ok {
		m.put(b)
		m.end(o, m.replyError(o, why))
		return
	}
	c.Message, c.Reply, c.Placed = message, *from, placed
	*from = nil
	m.end(o, nil)
}

// replyError says why the Reply to a Call cannot be used.
func (m *Machine) replyError(o *call, why string) error {
	switch {
	case o.collected > m.cfg.MaxReply:
		return &LongReplyError{o.collected, m.cfg.MaxReply}
	case o.spoiled:
		why = "a part of it is no MSG, or there is no memory for it"
	}
	return fmt.Errorf("%w: %s", ErrReply, why)
}

// mismatch says how the lists of a Reply differ from those that the Call has offered: checkReply has found that they do.
func (m *Machine) mismatch(o *call, h *Header) string {
	switch {
	case len(h.Reads) > 0:
		return "it has Read chunks"
	case len(h.Writes) != o.writes:
		return fmt.Sprintf("it returns %d Write chunks of %d", len(h.Writes), o.writes)
	case h.HasReply && !o.hasReply:
		return "it returns a Reply chunk, and none was given"
	}
	for i := range h.Writes {
		if s := m.misreturned(&o.leases[o.reads+i], h.Writes[i]); s != "" {
			return fmt.Sprintf("Write chunk %d: %s", i+1, s)
		}
	}
	if h.HasReply {
		if s := m.misreturned(&o.leases[o.reads+o.writes], h.Reply); s != "" {
			return "Reply chunk: " + s
		}
	}
	return fmt.Sprintf("%v does not say where the RPC message is", h.Type)
}

// misreturned says how a chunk of a Reply differs from the one that was given, or "".
func (m *Machine) misreturned(l *Lease, c Chunk) string {
	if n := m.segmentsOf(int(l.Length)); len(c) != n {
		return fmt.Sprintf("it has %d segments of %d", len(c), n)
	}
	s, full := l.Segment, true
	for i := range c {
		piece := min(s.Length, m.segmentSize())
		switch {
		case c[i].Handle != s.Handle || c[i].Offset != s.Offset:
			return fmt.Sprintf("segment %d returns memory at handle %#x, offset %#x: it was lent at handle %#x, offset %#x", i+1, c[i].Handle, c[i].Offset, s.Handle, s.Offset)
		case c[i].Length > piece:
			return fmt.Sprintf("segment %d returns %d octets of %d", i+1, c[i].Length, piece)
		case !full && c[i].Length > 0:
			return fmt.Sprintf("segment %d returns %d octets, and the one before is not full", i+1, c[i].Length)
		}
		full = c[i].Length == piece
		s.Length -= piece
		s.Offset += uint64(piece)
	}
	return ""
}

// checkReply holds the lists of a Reply against what the Call has offered (RPC2-039, RPC2-102). It returns how many octets were
// placed in each Write chunk, and how many are in the Reply chunk.
func (m *Machine) checkReply(o *call, h *Header) (placed [MaxInto]int, reply int, ok bool) {
	for i := range placed {
		placed[i] = -1
	}
	if len(h.Reads) > 0 || len(h.Writes) != o.writes || h.HasReply && !o.hasReply {
		return placed, 0, false
	}
	for i := range h.Writes {
		if placed[i], ok = m.returned(&o.leases[o.reads+i], h.Writes[i]); !ok {
			return placed, 0, false
		}
	}
	if h.HasReply {
		if reply, ok = m.returned(&o.leases[o.reads+o.writes], h.Reply); !ok {
			return placed, 0, false
		}
	}
	return placed, reply, (h.Type == TypeNoMsg) == (reply > 0)
}

// returned holds a chunk of a Reply against the one that was given: the same segments, filled in order.
func (m *Machine) returned(l *Lease, c Chunk) (n int, ok bool) {
	if len(c) != m.segmentsOf(int(l.Length)) {
		return 0, false
	}
	s, full := l.Segment, true
	for i := range c {
		piece := min(s.Length, m.segmentSize())
		if c[i].Handle != s.Handle || c[i].Offset != s.Offset || c[i].Length > piece || !full && c[i].Length > 0 {
			return 0, false
		}
		full = c[i].Length == piece
		n += int(c[i].Length)
		s.Length -= piece
		s.Offset += uint64(piece)
	}
	return n, true
}
