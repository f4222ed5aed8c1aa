package rpcrdma

import "time"

// Words of an RPC message.
const (
	msgCall  = 0
	msgReply = 1
	// leastRPC is what tells a Call from a Reply: XID and msg_type.
	leastRPC = 2 * wordSize
)

// half is which half of a machine a message is for.
type half uint8

const (
	neither      half = iota // that is not known
	forResponder             // a Call, of the peer
	forRequester             // a Reply, to a Call of this side
)

// receive decodes a message and hands it to the half that it is for.
func (m *Machine) receive(now time.Time, b *Buffer, message []byte, invalidated bool, stag uint32) {
	p, _ := Peek(message)
	if p.Type != TypeError && len(message) >= PrefixSize2 {
		m.hear(p)
	}
	h := &m.header
	if m.phase == Closed {
		m.put(b)
		return
	}
	payload, err := m.decoder.Decode(message, h)
	d := halfOf(h, payload)
	if invalidated && (err != nil || !mayInvalidate(h, d)) {
		// The memory was withdrawn by a message that is not the Reply to the Call that lent it.
		m.close(ErrProtocol)
		m.put(b)
		return
	}
	if err != nil {
		m.refuse(now, err.(*Fault), d, h, b)
		return
	}
	if m.version == Version2 && m.phase < Open && (h.Type == TypeMsg || h.Type == TypeNoMsg && !h.IsRefresh()) {
		m.settled() // a peer without properties (RPC2-105)
	}
	switch {
	case h.Type == TypeError:
		if h.Version == m.version { // the word of an ERR_VERS of the other layout means nothing here
			m.credits.received(kindError, h.Credit)
		}
		if !m.settleError(h) {
			m.req.failed(m, now, h, invalidated, stag)
		}
		m.put(b)
	case h.Type == TypeConnProp:
		m.credits.received(kindProperties, h.Credit)
		m.properties(now, h)
		m.put(b)
	case h.IsRefresh():
		m.credits.received(kindRefresh, h.Credit)
		m.put(b)
	case d == forResponder:
		m.credits.received(kindOf(h, kindCall), h.Credit)
		m.rsp.received(m, now, h, payload, b)
	case d == forRequester:
		m.credits.received(kindOf(h, kindReply), h.Credit)
		m.req.received(m, now, h, payload, b, invalidated, stag)
	default: // a header without an RPC message
		m.countMalformed(now)
		m.put(b)
	}
}

// mayInvalidate reports whether a message may be one that has withdrawn memory of this side.
func mayInvalidate(h *Header, d half) bool {
	return h.Type == TypeError || d == forRequester && (h.Type == TypeMsg || h.Type == TypeNoMsg && !h.IsRefresh())
}

// kindOf returns what a message is to credits: k, or a part of that.
func kindOf(h *Header, k kind) kind {
	if h.Flags&FlagMore != 0 {
		return kindPart
	}
	return k
}

// halfOf says which half of the machine a message is for. Version 2 has a flag for that; version 1 has the RPC message itself,
// and a Call without one has a Read list (RPC1-060, RPC2-110).
func halfOf(h *Header, payload []byte) half {
	switch {
	case h.Version == Version2 && h.Flags&FlagResponse != 0:
		return forRequester
	case h.Version == Version2:
		return forResponder
	case h.Type == TypeNoMsg && len(h.Reads) > 0:
		return forResponder
	case h.Type == TypeNoMsg && h.HasReply:
		return forRequester
	case len(payload) >= leastRPC && word(payload, wordSize) == msgCall:
		return forResponder
	case len(payload) >= leastRPC && word(payload, wordSize) == msgReply:
		return forRequester
	}
	return neither
}

// refuse drops a message that cannot be used, or answers it.
func (m *Machine) refuse(now time.Time, f *Fault, d half, h *Header, b *Buffer) {
	if m.credits != nil {
		m.refusedCredits(f, h)
	}
	if d == neither && m.cfg.Side == Server && !m.req.has(f.XID) {
		d = forResponder
	}
	switch {
	case f.Report.Code == CodeBadPropVal:
		m.badProperties(now, f.XID)
		m.put(b)
	case f.Report.Code == CodeVers && m.cfg.Side == Server, d == forRequester && f.EitherSide():
		m.countMalformed(now)
		m.sendError(f.Version, f.XID, f.Report)
		m.put(b)
	case d == forResponder && m.credits != nil && f.Version == m.version:
		if !f.Limit {
			m.countMalformed(now)
		}
		m.rsp.refused(m, now, f, h, b)
	default:
		m.countMalformed(now)
		m.put(b)
	}
}

// refusedCredits counts a message that cannot be used: in version 2 it has used a credit whatever it was (RPC2-080),
// and its own word counts if it is there.
func (m *Machine) refusedCredits(f *Fault, h *Header) {
	if m.version != Version2 {
		return
	}
	if h.Version == Version2 {
		m.credits.received(kindPart, h.Credit)
	} else {
		m.credits.received(kindUnknown, 0)
	}
}
