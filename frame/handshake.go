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

// handshakeIndexes are the message indexes by which the kinds are told apart.
var handshakeIndexes = [handshakes]uint16{
	HandshakeHello: helloAsk, HandshakeWelcome: helloTell, HandshakeConfirm: 5, HandshakeReject: 6, HandshakeRefused: helloRefer,
}

// Handshake is a frame by which two endpoints of our own kind begin a session. An endpoint of another kind may get one: to
// that it is a message that does nothing. In the message it has these fields; count and length are 0, and both completion words
// all-ones:
//
//	Txn    Sender
//	Addr   Receiver
//	Index  0 HELLO, 1 WELCOME, 4 REFUSED, 5 CONFIRM, 6 REJECT
//	Type   1: the frame has a checksum, and the session will have if both sides say so; else 0
//
// In the frame header, whose acknowledgement is none, Check is where a hello has its id: the frame id and the first
// acknowledged id are its halves. [Services] may follow the message, and a [Refusal] follows in a REFUSED.
type Handshake struct {
	Kind             HandshakeKind
	Sender, Receiver uint32 // epochs; Receiver is 0 in a HELLO
	Check            uint32 // of WELCOME, CONFIRM and REJECT
	Checks           bool   // the frame has a checksum, see [FlagChecksum]
}

// HandshakeSize is the length of a handshake frame without what may follow its message.
const HandshakeSize = HeaderSize + MessageHeaderSize

// Put writes the frame to the first HandshakeSize bytes of b.
func (h *Handshake) Put(b []byte, dst, src EndpointID) {
	header := Header{Dst: dst, Src: src, Flags: FlagMessages}
	header.SetHelloID(h.Check)
	header.Put(b)
	m := Message{Txn: h.Sender, Addr: h.Receiver, CompletionAddr: NoCompletion, CompletionValue: NoCompletion, Index: handshakeIndexes[h.Kind]}
	if h.Checks {
		m.Type = helloChecks
	}
	m.Put(b[HeaderSize:])
}

// HandshakeOf reads f as a frame of a handshake. Not ok: it is none. first is its first message.
func HandshakeOf(f *Frame, first *Message) (h Handshake, ok bool) {
	m := first
	if m.Count != 0 || m.Len != 0 || m.Completes() || m.Txn == 0 || m.More || f.AckCount != 0 {
		return Handshake{}, false
	}
	h = Handshake{Sender: m.Txn, Receiver: m.Addr, Check: f.HelloID(), Checks: m.Type == helloChecks}
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
	Identity // of the sender
	Why      uint8
}

// mostWhy is the highest reason of a Refusal.
const mostWhy = 3

var whyTexts = [mostWhy + 1]string{"another id is here", "no unknown sources are taken", "there is no room", "a seal is needed"}

// Put writes r to the first IdentitySize bytes of b.
func (r Refusal) Put(b []byte) {
	r.Identity.Put(b)
	b[1] = r.Why
}

// refused reports whether f is a REFUSED that says why. Of another id an [Identity] tells.
func (f *Frame) refused() (r Refusal, ok bool) {
	c := f.Cursor()
	c.Next()
	if h, ok := HandshakeOf(f, &c.Msg); !ok || h.Kind != HandshakeRefused {
		return Refusal{}, false
	}
	r, ok = RefusalOf(f)
	return r, ok && r.Why != 0
}

// RefusalOf returns what a REFUSED says. Not ok: nothing that could be.
func RefusalOf(f *Frame) (r Refusal, ok bool) {
	b := f.Rest()
	if len(b) < IdentitySize || b[0] != identityMark || b[1] > mostWhy {
		return Refusal{}, false
	}
	le := binary.LittleEndian
	r = Refusal{Identity{ID: EndpointID(le.Uint16(b[2:])), Size: le.Uint64(b[4:])}, b[1]}
	return r, r.ID != 0 && r.Size <= 1<<32 && (r.Why != 0 || r.ID != f.Src)
}
