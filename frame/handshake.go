package frame

import "encoding/binary"

// HandshakeKind is the kind of a frame with which a session begins, or does not.
type HandshakeKind uint8

const (
	NoHandshake      HandshakeKind = iota
	HandshakeHello                 // asks for a session under Sender
	HandshakeWelcome               // answers a HELLO: Sender is the responder's epoch, Receiver that of the HELLO
	HandshakeConfirm               // answers a WELCOME: the session exists, and data may follow
	HandshakeReject                // answers a CONFIRM, with its epochs and its check: they can never be a session
	HandshakeRefused               // answers a HELLO or a CONFIRM: Sender and Receiver are its Sender, and a [Refusal] follows
	handshakes
)

var handshakeNames = [handshakes]string{"none", "HELLO", "WELCOME", "CONFIRM", "REJECT", "REFUSED"}

func (k HandshakeKind) String() string { return handshakeNames[k] }

// HasServices reports whether [Services] may follow the message.
func (k HandshakeKind) HasServices() bool {
	return k == HandshakeHello || k == HandshakeWelcome || k == HandshakeConfirm
}

// handshakeIndexes are the message indexes by which the kinds are told apart. In a message without data whose transaction has no
// data messages the protocol leaves them unused.
var handshakeIndexes = [handshakes]uint16{
	HandshakeHello: 0, HandshakeWelcome: 1, HandshakeRefused: 4, HandshakeConfirm: 5, HandshakeReject: 6,
}

const (
	// NotHandshake is the message index of a completion alone, so that it is not taken for a frame of a handshake
	// whatever it writes.
	NotHandshake = 2

	handshakeChecks = 1 // type
)

// Handshake is a frame by which two endpoints of our own kind begin a session. An endpoint of another kind may get one: to
// that it is a message that does nothing. In the message it has these fields; count and length are 0, and both completion words
// all-ones:
//
//	Txn    Sender
//	Addr   Receiver
//	Index  0 HELLO, 1 WELCOME, 4 REFUSED, 5 CONFIRM, 6 REJECT
//	Type   1: the frame has a checksum, and the session will have if both sides say so; else 0
//
// In the frame header, whose acknowledgement is none, the frame id and the first acknowledged id are the halves of Check.
// [Services] may follow the message of a HELLO, a WELCOME or a CONFIRM, and a [Refusal] follows that of a REFUSED. A HELLO to
// the id 0, which no endpoint has, asks who is there: the answer is from the id 0, a REFUSED, or a WELCOME if the HELLO asks for that, see [PutIdentity].
type Handshake struct {
	Kind             HandshakeKind
	Sender, Receiver uint32 // epochs; Receiver is 0 in a HELLO
	Check            uint32 // of WELCOME, CONFIRM and REJECT
	Checks           bool   // the frame has a checksum, see [FlagChecksum]
}

const (
	// HandshakeSize is the length of a handshake frame without what may follow its message.
	HandshakeSize = HeaderSize + MessageHeaderSize
	// ListedSize is the length of one with [Services].
	ListedSize = HandshakeSize + ServicesSize
	// RefusedSize is the length of a REFUSED.
	RefusedSize = HandshakeSize + RefusalSize
)

// Put writes the frame to the first HandshakeSize bytes of b.
func (h *Handshake) Put(b []byte, dst, src EndpointID) {
	header := Header{Dst: dst, Src: src, Flags: FlagMessages, Seq: Seq(h.Check), AckStart: Seq(h.Check >> 16)}
	header.Put(b)
	m := Message{Txn: h.Sender, Addr: h.Receiver, CompletionAddr: NoCompletion, CompletionValue: NoCompletion, Index: handshakeIndexes[h.Kind]}
	if h.Checks {
		m.Type = handshakeChecks
	}
	m.Put(b[HeaderSize:])
}

// PutWith writes the frame and the list that follows it to the first bytes of b, and returns how many. Without a list, which is nil
// then, a HELLO is as long as a REFUSED, so that its answer may be one.
func (h *Handshake) PutWith(b []byte, dst, src EndpointID, list *Services) (n int) {
	h.Put(b, dst, src)
	switch {
	case list != nil:
		list.Put(b[HandshakeSize:])
		return ListedSize
	case h.Kind == HandshakeHello:
		clear(b[HandshakeSize:RefusedSize])
		return RefusedSize
	}
	return HandshakeSize
}

// HandshakeOf reads f as a frame of a handshake. Not ok: it is none. first is its first message.
func HandshakeOf(f *Frame, first *Message) (h Handshake, ok bool) {
	m := first
	if m.Count != 0 || m.Len != 0 || m.Completes() || m.Txn == 0 || m.More || f.AckCount != 0 {
		return Handshake{}, false
	}
	h = Handshake{Sender: m.Txn, Receiver: m.Addr, Check: uint32(f.AckStart)<<16 | uint32(f.Seq), Checks: m.Type == handshakeChecks}
	for k := HandshakeHello; k < handshakes; k++ {
		if handshakeIndexes[k] == m.Index {
			h.Kind = k
		}
	}
	switch h.Kind {
	case NoHandshake:
		return Handshake{}, false
	case HandshakeHello:
		return h, h.Receiver == 0
	case HandshakeRefused:
		return h, h.Receiver == h.Sender
	default:
		return h, h.Receiver != 0
	}
}

// Refusal is what a REFUSED says of its sender, and why there is no session:
//
//	offset  size  field
//	0       1     0x49
//	1       1     Why: 0 another id, 1 no unknown sources, 2 no room, 3 a seal is needed
//	2       2     ID
//	4       8     Size
type Refusal struct {
	ID   EndpointID // of the sender; never 0
	Size uint64     // of its memory and services in bytes, up to 2^32; 0: not known
	Why  uint8
}

// lastServiceAt is where a list of services has the last one. Where there are fewer, an identity or a round trip may be there.
const lastServiceAt = ServicesSize - RefusalSize

// PutIdentity writes who the sender is to a list of services, which has room for it: in the place of the last service, as a [Refusal]. In the WELCOME
// that answers a HELLO to the id 0, it is the endpoint that is there. In that HELLO it has no id: it asks for such a WELCOME.
func PutIdentity(list []byte, r Refusal) { r.Put(list[lastServiceAt:]) }

// Identity returns who the sender of a WELCOME from the id 0 is. Not ok: f is no such frame, or does not say that.
func (f *Frame) Identity() (r Refusal, ok bool) {
	if f.Src != 0 {
		return Refusal{}, false
	}
	b, ok := f.lastService(HandshakeWelcome)
	if !ok {
		return Refusal{}, false
	}
	r, ok = refusalIn(b, f.Src)
	return r, ok && r.Why == 0
}

// AsksIdentity reports whether f is a HELLO to the id 0 that asks for a WELCOME with an identity.
func (f *Frame) AsksIdentity() bool {
	b, ok := f.lastService(HandshakeHello)
	return ok && f.Dst == 0 && b[0] == refusalMark
}

// PutTrip writes how many microseconds the answer to the sender's HELLO took, at most, and not 0, to a list of services, which has room for it. In the
// place of the last service are 0x54, three zeros, and the number in 32 bits. A CONFIRM says so: its receiver has measured nothing yet.
func PutTrip(list []byte, micros uint32) {
	b := list[lastServiceAt:ServicesSize]
	clear(b)
	b[0] = tripMark
	binary.LittleEndian.PutUint32(b[4:], micros)
}

// Trip returns that of a CONFIRM; 0: it does not say so.
func (f *Frame) Trip() (micros uint32) {
	b, ok := f.lastService(HandshakeConfirm)
	if !ok || b[0] != tripMark {
		return 0
	}
	return binary.LittleEndian.Uint32(b[4:])
}

// lastService returns the place of the last service in f, if f is of that kind and its list leaves the place free.
func (f *Frame) lastService(k HandshakeKind) (b []byte, ok bool) {
	h, ok := f.Handshake()
	if !ok || h.Kind != k {
		return nil, false
	}
	s, ok := f.Services()
	if !ok || !s.HasRoom() {
		return nil, false
	}
	return f.Rest()[lastServiceAt:ServicesSize], true
}

const (
	refusalMark = 0x49
	tripMark    = 0x54
	// RefusalSize is the length of a refusal in bytes.
	RefusalSize = 12
	// mostWhy is the highest reason of a Refusal.
	mostWhy = 3
)

var whyTexts = [mostWhy + 1]string{"another id is here", "no unknown sources are taken", "there is no room", "a seal is needed"}

// Put writes r to the first RefusalSize bytes of b.
func (r Refusal) Put(b []byte) {
	_ = b[RefusalSize-1]
	b[0], b[1] = refusalMark, r.Why
	binary.LittleEndian.PutUint16(b[2:], uint16(r.ID))
	binary.LittleEndian.PutUint64(b[4:], r.Size)
}

// Handshake reads f as a frame of a handshake. Not ok: it is none.
func (f *Frame) Handshake() (h Handshake, ok bool) {
	c := f.Cursor()
	c.Next()
	return HandshakeOf(f, &c.Msg)
}

// Refusal returns what f says, which is a REFUSED. Not ok: it is none, or says nothing that could be.
func (f *Frame) Refusal() (r Refusal, ok bool) {
	if h, ok := f.Handshake(); !ok || h.Kind != HandshakeRefused {
		return Refusal{}, false
	}
	return RefusalOf(f)
}

// RefusalOf is [Frame.Refusal] of a frame that is known to be a REFUSED.
func RefusalOf(f *Frame) (r Refusal, ok bool) {
	return refusalIn(f.Rest(), f.Src)
}

// refusalIn reads what b begins with, in a frame from src.
func refusalIn(b []byte, src EndpointID) (r Refusal, ok bool) {
	if len(b) < RefusalSize || b[0] != refusalMark || b[1] > mostWhy {
		return Refusal{}, false
	}
	le := binary.LittleEndian
	r = Refusal{ID: EndpointID(le.Uint16(b[2:])), Size: le.Uint64(b[4:]), Why: b[1]}
	return r, r.ID != 0 && r.Size <= 1<<32 && (r.Why != 0 || r.ID != src)
}
