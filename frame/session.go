package frame

import "encoding/binary"

// Peers of our own kind introduce their lives to each other and name them in
// acknowledgements that travel alone; package endpoint says what for. To all
// others a hello is a message that does nothing, and a stamp is link padding.

// Index of a message without data whose transaction has no data messages. The
// protocol leaves it unused.
const (
	helloAsk  = 0
	helloTell = 1
	// NotHello marks a completion alone, so that it is not taken for a [Hello]
	// whatever it writes.
	NotHello   = 2
	helloLeave = 3
	helloRefer = 4

	helloChecks = 1 // type
)

// Hello is an introduction, or the goodbye that ends what one began. In a message it has
// these fields; count and length are 0, and both completion words all-ones:
//
//	Txn    Life
//	Addr   Peer
//	Index  0: an answer is asked for; 1: this is the answer; 3: the life is over;
//	       4: the answer of an endpoint that has not the id that was asked for
//	Type   1: the frame has a checksum, and so have all that follow if the peer's have; else 0
//
// In the frame header, whose acknowledgement is none, the first acknowledged id
// is the upper half of the frame's id, counted in 32 bits. Behind the message may be
// the sender's [Services].
//
// Ids are 1 to 65535, so an introduction to 0 is for nobody: it asks who is there.
type Hello struct {
	Life  uint32 // of the sender, or, if it Refers, as Peer; never 0
	Peer  uint32 // the life of the receiver as the sender knows it, or 0
	Tells bool   // it answers
	// Leaves: the life is over, and a goodbye to one that is named. Those who do not know
	// it take it for a message that does nothing.
	Leaves bool
	// Refers: whoever answers has another id than the one that was asked for, which is the
	// frame's source. Its [Identity] is behind the message.
	Refers bool
	// Checks: the sender's frames have a checksum, see [FlagChecksum], this one, too. It is said twice, so that one
	// fault cannot make it a peer that has none.
	Checks bool
}

// Message returns the only message of an introduction.
func (h Hello) Message() Message {
	m := Message{Txn: h.Life, CompletionAddr: NoCompletion, CompletionValue: NoCompletion, Addr: h.Peer, Index: helloAsk}
	if h.Checks {
		m.Type = helloChecks
	}
	switch {
	case h.Refers:
		m.Index = helloRefer
	case h.Leaves:
		m.Index = helloLeave
	case h.Tells:
		m.Index = helloTell
	}
	return m
}

// Hello reads m, the first message of a frame, as an introduction. Not ok: it is
// none.
func (m *Message) Hello() (h Hello, ok bool) {
	if m.Count != 0 || m.Len != 0 || m.Completes() || m.Txn == 0 || m.More {
		return Hello{}, false
	}
	switch h := (Hello{Life: m.Txn, Peer: m.Addr, Checks: m.Type == helloChecks}); m.Index {
	case helloAsk:
		return h, true
	case helloTell:
		h.Tells = true
		return h, true
	case helloLeave:
		h.Leaves = true
		return h, h.Peer != 0
	case helloRefer:
		h.Refers = true
		return h, h.Peer == h.Life
	}
	return Hello{}, false
}

// Identity is who an endpoint is that was asked for another id: it stands behind a [Hello] that
// Refers.
//
//	offset  size  field
//	0       1     0x49
//	1       1     0
//	2       2     ID
//	4       8     Size
type Identity struct {
	ID   EndpointID // never 0
	Size uint64     // of its memory and services in bytes, up to 2^32; 0: not known
}

const (
	identityMark = 0x49
	// IdentitySize is the length of an identity in bytes.
	IdentitySize = 12
)

// Put writes i to the first IdentitySize bytes of b.
func (i Identity) Put(b []byte) {
	_ = b[IdentitySize-1]
	b[0], b[1] = identityMark, 0
	binary.LittleEndian.PutUint16(b[2:], uint16(i.ID))
	binary.LittleEndian.PutUint64(b[4:], i.Size)
}

// Identity returns who answers an introduction that was for the id that is f's source. Not ok: f
// is no such answer, or says nothing that could be.
func (f *Frame) Identity() (i Identity, ok bool) {
	c := f.Cursor()
	c.Next()
	if h, ok := c.Msg.Hello(); !ok || !h.Refers {
		return Identity{}, false
	}
	b := f.Rest()
	if len(b) < IdentitySize || b[0] != identityMark || b[1] != 0 {
		return Identity{}, false
	}
	i = Identity{ID: EndpointID(binary.LittleEndian.Uint16(b[2:])), Size: binary.LittleEndian.Uint64(b[4:])}
	if i.ID == 0 || i.ID == f.Src || i.Size > 1<<32 {
		return Identity{}, false
	}
	return i, true
}

// HelloID returns the id of an introduction in 32 bits.
func (h *Header) HelloID() uint32 { return uint32(h.AckStart)<<16 | uint32(h.Seq) }

// SetHelloID makes id that of an introduction.
func (h *Header) SetHelloID(id uint32) { h.AckStart, h.Seq = Seq(id>>16), Seq(id) }

// Stamp follows the header of a frame without messages:
//
//	offset  size  field
//	0       4     Life
//	4       4     ID
//	8       4     Start
type Stamp struct {
	Life  uint32 // of the receiver, as the sender knows it
	ID    uint32 // the frame's own id, counted in 32 bits
	Start uint32 // the first id that it acknowledges, likewise
}

// StampSize is the length of a stamp in bytes.
const StampSize = 12

// Put writes s to the first StampSize bytes of b.
func (s Stamp) Put(b []byte) {
	_ = b[StampSize-1]
	binary.LittleEndian.PutUint32(b[0:], s.Life)
	binary.LittleEndian.PutUint32(b[4:], s.ID)
	binary.LittleEndian.PutUint32(b[8:], s.Start)
}

// Stamp returns what is stamped on a frame. Not ok: nothing, or what does not
// fit its header.
func (f *Frame) Stamp() (s Stamp, ok bool) {
	b := f.Rest()
	if f.messages != 0 || len(b) < StampSize {
		return Stamp{}, false
	}
	s = Stamp{binary.LittleEndian.Uint32(b[0:]), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	return s, Seq(s.ID) == f.Seq && Seq(s.Start) == f.AckStart
}
