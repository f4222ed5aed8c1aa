package flood

import (
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
)

// kind is what a stranger sends.
type kind struct {
	name   string
	proven bool // it has a session
	// why is for what the server counts such frames as refused; RefusedNone: it takes them, answers them, or takes them for what
	// changes nothing.
	why   dgrdma.Reason
	make  func(s *stranger) []byte
	steps bool // it waits for answers, and ends the sessions that it has
}

// withoutMessages is a frame of v1.07 that acknowledges.
func (s *stranger) withoutMessages() []byte {
	b := make([]byte, prefix+frame.HeaderSize)
	h := frame.Header{Dst: serverID, Src: s.anyID(), Seq: frame.Seq(s.rnd.Uint32()), AckStart: 1, AckCount: 255}
	h.Put(b[prefix:])
	return b
}

// forged makes a frame of the handshake that answers what was never asked, or confirms what was never told.
func (s *stranger) forged(id frame.EndpointID, kind frame.HandshakeKind) []byte {
	h := frame.Handshake{Kind: kind, Sender: s.anyEpoch(), Receiver: s.anyEpoch(), Check: s.rnd.Uint32()}
	if kind == frame.HandshakeRefused {
		h.Receiver, h.Check = h.Sender, 0
	}
	b := s.shake(id, h)
	if kind == frame.HandshakeRefused {
		b = b[:prefix+frame.HandshakeSize+frame.RefusalSize]
		frame.Refusal{ID: s.anyID(), Why: uint8(s.rnd.IntN(4))}.Put(b[prefix+frame.HandshakeSize:])
	}
	return b
}

// many are as many messages as a frame has room for, of transactions that are never whole.
func (s *stranger) many(apart uint32, count int) (all []message) {
	for range eachFrame {
		s.txn += apart
		all = append(all, word(s.txn, uint16(count), uint16(1+s.rnd.IntN(count))))
	}
	return all
}

var kinds = []kind{
	{"junk", false, dgrdma.RefusedDestination, func(s *stranger) []byte {
		b := make([]byte, 64)
		s.fill(b)
		return b
	}, false},
	{"hello", false, dgrdma.RefusedNone, func(s *stranger) []byte {
		return s.shake(s.anyID(), frame.Handshake{Kind: frame.HandshakeHello, Sender: s.anyEpoch()})
	}, false},
	{"welcome", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return s.forged(s.anyID(), frame.HandshakeWelcome) }, false},
	{"confirm", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return s.forged(s.anyID(), frame.HandshakeConfirm) }, false},
	{"reject", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return s.forged(s.anyID(), frame.HandshakeReject) }, false},
	{"refused", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return s.forged(s.anyID(), frame.HandshakeRefused) }, false},
	{"data", false, dgrdma.RefusedNoSession, func(s *stranger) []byte {
		return s.encode(s.anyID(), frame.Seq(s.rnd.Uint32()), word(s.rnd.Uint32(), 0, frame.NotHandshake))
	}, false},
	{"empty", false, dgrdma.RefusedSource, (*stranger).withoutMessages, false},
	{"sessionData", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return data(s.any(), word(s.rnd.Uint32(), 0, frame.NotHandshake)) }, false},
	{"bell", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return control(s.any(), frame.ControlBell) }, false},
	{"ack", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return acknowledgement(s.any()) }, false},
	{"bye", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return bye(s.any(), s.anyEpoch(), s.anyEpoch()) }, false},
	{"probe", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return probe(s.any()) }, false},
	{"reset", false, dgrdma.RefusedNoSession, func(s *stranger) []byte { return control(s.any(), frame.ControlReset) }, false},
	{"question", false, dgrdma.RefusedSealed, func(s *stranger) []byte { return s.asks().Again(make([]byte, prefix), s.between()) }, false},
	{"challenge", false, dgrdma.RefusedSealed, func(s *stranger) []byte { return s.handshake(seal.Challenge) }, false},
	{"first", false, dgrdma.RefusedSealed, func(s *stranger) []byte { return s.handshake(seal.First) }, false},
	{"second", false, dgrdma.RefusedSealed, func(s *stranger) []byte { return s.handshake(seal.Second) }, false},
	{"sealed", false, dgrdma.RefusedSealed, func(s *stranger) []byte {
		b := make([]byte, prefix+100)
		s.fill(b[prefix:])
		ids := s.between()
		copy(b[prefix:], ids[:])
		b[prefix+9] = seal.Flag | byte(s.rnd.IntN(seal.Indexes))<<1
		return b
	}, false},
	{"provenHello", true, dgrdma.RefusedNone, func(s *stranger) []byte {
		return s.shake(strangerID, frame.Handshake{Kind: frame.HandshakeHello, Sender: s.anyEpoch()})
	}, false},
	{"provenConfirm", true, dgrdma.RefusedForeign, func(s *stranger) []byte { return s.forged(strangerID, frame.HandshakeConfirm) }, false},
	{"provenReject", true, dgrdma.RefusedForeign, func(s *stranger) []byte { return s.forged(strangerID, frame.HandshakeReject) }, false},
	{"provenSessions", true, dgrdma.RefusedNone, (*stranger).again, true},
	{"provenForgedTag", true, dgrdma.RefusedForeign, func(s *stranger) []byte {
		h := s.own.header(s.own.sent + 1)
		h.Tag ^= s.anyEpoch()
		return data(h, word(s.rnd.Uint32(), 0, frame.NotHandshake))
	}, false},
	{"provenFarTransaction", true, dgrdma.RefusedNone, func(s *stranger) []byte { // attack A5
		s.txn += 1 << 20
		return data(s.own.header(s.own.next()), word(s.txn, 0, frame.NotHandshake))
	}, false},
	{"provenFarFrame", true, dgrdma.RefusedForeign, func(s *stranger) []byte { // attack A5
		s.txn++
		return data(s.own.header(s.own.sent+1+s.rnd.Uint32N(1<<31)), word(s.txn, 0, frame.NotHandshake))
	}, false},
	{"provenHoles", true, dgrdma.RefusedNone, func(s *stranger) []byte { // attack A5: each has an ACK with as many ranges as there may be leave
		s.txn++
		return data(s.own.header(s.own.sent+2+s.rnd.Uint32N(1<<13)*2), word(s.txn, 0, frame.NotHandshake))
	}, false},
	{"provenColliding", true, dgrdma.RefusedTooManyOpen, func(s *stranger) []byte { // attack A5: ids that once met in one place of a table
		return data(s.own.header(s.own.next()), s.many(512, 2)...)
	}, false},
	{"provenLong", true, dgrdma.RefusedTooManyOpen, func(s *stranger) []byte { // attack A6
		return data(s.own.header(s.own.next()), s.many(1, 65535)...)
	}, false},
	{"provenBell", true, dgrdma.RefusedNone, func(s *stranger) []byte { return control(s.own.header(s.own.next()), frame.ControlBell) }, false},
	{"provenCopies", true, dgrdma.RefusedNone, func(s *stranger) []byte { return control(s.own.header(uint32(s.own.local)+1), frame.ControlBell) }, false},
	{"provenAcks", true, dgrdma.RefusedAckOfUnsent, func(s *stranger) []byte { return acknowledgement(s.own.header(s.rnd.Uint32())) }, false},
	{"provenAckAhead", true, dgrdma.RefusedAckOfUnsent, func(s *stranger) []byte {
		h := s.own.header(s.rnd.Uint32())
		h.Ack = s.rnd.Uint32()
		return acknowledgement(h)
	}, false},
	{"provenBye", true, dgrdma.RefusedForeign, func(s *stranger) []byte { return bye(s.own.header(0), uint32(s.own.local), s.anyEpoch()) }, false},
	{"provenProbe", true, dgrdma.RefusedNone, func(s *stranger) []byte { return probe(s.own.header(0)) }, false},
	{"provenReset", true, dgrdma.RefusedForeign, func(s *stranger) []byte {
		h := s.own.header(s.rnd.Uint32())
		h.Tag, h.Ack = session.Tag(s.own.local, s.own.remote), s.rnd.Uint32()
		return control(h, frame.ControlReset)
	}, false},
}
