package frame

import (
	"encoding/binary"
	"fmt"
)

// HeaderSize is the length of a frame header in bytes.
const HeaderSize = 10

// EtherType is the Ethernet type that OpenCPI uses for DG/RDMA. The specification
// leaves it open (DGRDMA-042).
const EtherType = 0xF042

// PrefixSize is the length of the ignored bytes before a frame in a UDP datagram
// (DGRDMA-045).
const PrefixSize = 2

// FlagMessages is the bit of [Header.Flags] that the protocol defines: the frame holds
// messages (DGRDMA-015).
const FlagMessages = 1

// EndpointID names an endpoint within a cluster. 0 names none.
type EndpointID uint16

// Header is a frame header.
type Header struct {
	Dst, Src EndpointID
	Seq      Seq
	AckStart Seq
	AckCount uint8
	Flags    uint8
}

// HasMessages reports whether messages follow the header. Only bit 0 counts;
// the others are reserved and ignored.
func (h *Header) HasMessages() bool { return h.Flags&FlagMessages != 0 }

// Put writes h to the first HeaderSize bytes of b.
func (h *Header) Put(b []byte) {
	_ = b[HeaderSize-1]
	binary.LittleEndian.PutUint16(b[0:], uint16(h.Dst))
	binary.LittleEndian.PutUint16(b[2:], uint16(h.Src))
	binary.LittleEndian.PutUint16(b[4:], uint16(h.Seq))
	binary.LittleEndian.PutUint16(b[6:], uint16(h.AckStart))
	b[8] = h.AckCount
	b[flagsAt] = h.Flags
}

// IDsOf returns whose frame b is, which has HeaderSize bytes at least.
func IDsOf(b []byte) (dst, src EndpointID) {
	return EndpointID(binary.LittleEndian.Uint16(b[0:])), EndpointID(binary.LittleEndian.Uint16(b[2:]))
}

func (h *Header) get(b []byte) {
	_ = b[HeaderSize-1]
	h.Dst = EndpointID(binary.LittleEndian.Uint16(b[0:]))
	h.Src = EndpointID(binary.LittleEndian.Uint16(b[2:]))
	h.Seq = Seq(binary.LittleEndian.Uint16(b[4:]))
	h.AckStart = Seq(binary.LittleEndian.Uint16(b[6:]))
	h.AckCount = b[8]
	h.Flags = b[flagsAt]
}

// Frame is a parsed frame: a view of the datagram it came from.
type Frame struct {
	Header
	body     []byte // behind the header; what follows the last message is its capacity
	messages int
}

// Messages returns the number of messages in the frame.
func (f *Frame) Messages() int { return f.messages }

// Body returns the bytes of the messages with the padding between them,
// without what follows the last one.
func (f *Frame) Body() []byte {
	b := f.chained()
	return b[:len(b):len(b)]
}

// chained is Body, with what follows as its capacity.
func (f *Frame) chained() []byte {
	if f.messages == 0 {
		return nil
	}
	return f.body
}

// Rest returns what follows the last message, or the header of a frame without
// messages. The protocol takes it for padding.
func (f *Frame) Rest() []byte {
	if f.messages == 0 {
		return f.body
	}
	return f.body[len(f.body):cap(f.body)]
}

// Padding returns what is left of Rest after the services, or the refusal, that frames of a handshake have there.
func (f *Frame) Padding() []byte {
	b := f.Rest()
	if _, ok := f.Services(); ok {
		return b[ServicesSize:]
	}
	if _, ok := f.Refusal(); ok {
		return b[RefusalSize:]
	}
	return b
}

// Size returns the length of the frame, with what follows the last message.
func (f *Frame) Size() int { return HeaderSize + cap(f.body) }

// Cursor returns a cursor before the first message.
func (f *Frame) Cursor() Cursor { return Cursor{rest: f.chained()} }

// Reason says what is wrong with a frame.
type Reason uint8

const (
	ShortHeader    Reason = iota + 1 // fewer bytes than a frame header
	ShortMessage                     // a message header is announced that does not fit
	DataPastEnd                      // a data length reaches past the datagram
	PaddingNoMore                    // a message follows the padding, and the padding is cut
	ShortSession                     // fewer bytes than a session header
	NoSession                        // it is no session frame
	ShortControl                     // a control frame is cut
	UnknownControl                   // a control frame of a kind that there is not
	BadRanges                        // acknowledged ranges are not ascending, or touch each other, or are too many
	WrongProbe                       // a question for a length has another one
)

var reasonTexts = [...]string{
	ShortHeader:   "frame header needs 10 bytes",
	ShortMessage:  "message header announced here needs 24 bytes",
	DataPastEnd:   "data length of the message reaches past the end of the datagram",
	PaddingNoMore: "padding before the next message is cut off",

	ShortSession:   "session header needs 18 bytes",
	NoSession:      "flags and count are not those of a session frame",
	ShortControl:   "control frame is cut off",
	UnknownControl: "control frame is of an unknown kind",
	BadRanges:      "ranges of acknowledged ids are not ascending and apart, or too many",
	WrongProbe:     "probe of a length does not have that length",
}

func (r Reason) String() string {
	if int(r) < len(reasonTexts) && r != 0 {
		return reasonTexts[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Error says where a datagram stops being a frame, and why.
type Error struct {
	Off    int // offset from the start of the frame header
	Len    int // length of the datagram
	Reason Reason
}

func (e *Error) Error() string {
	return fmt.Sprintf("dgrdma: bad frame at offset %d of %d bytes: %v", e.Off, e.Len, e.Reason)
}

// Parse reads the frame header at the start of b and checks the whole chain of
// messages behind it (DGRDMA-021). The error is an *[Error].
func Parse(b []byte) (f Frame, err error) {
	messages, end, err := chainOf(b)
	if err == nil {
		f.Header.get(b)
		f.body, f.messages = b[HeaderSize:end:len(b)], messages
	}
	return f, err
}

// Decode is Parse into f, which spares a copy. After an error f is as before.
// What f refers to escapes, unlike with Parse.
func (f *Frame) Decode(b []byte) error {
	messages, end, err := chainOf(b)
	if err == nil {
		f.Header.get(b)
		f.body, f.messages = b[HeaderSize:end:len(b)], messages
	}
	return err
}

// chainOf returns how many messages a frame has, and where the last one ends.
func chainOf(b []byte) (messages, end int, err error) {
	if len(b) < HeaderSize {
		return 0, 0, &Error{0, len(b), ShortHeader}
	}
	if b[flagsAt]&FlagMessages == 0 {
		return 0, len(b), nil
	}
	return chain(b, HeaderSize)
}

// chain returns how many messages there are from off on, one at least, and where the last one ends.
func chain(b []byte, off int) (messages, end int, err error) {
	for {
		messages++
		if len(b)-off < MessageHeaderSize {
			return 0, 0, &Error{off, len(b), ShortMessage}
		}
		n := int(binary.LittleEndian.Uint16(b[off+msgLen:]))
		more := b[off+msgMore] != 0
		off += MessageHeaderSize
		if n > len(b)-off {
			return 0, 0, &Error{off - MessageHeaderSize, len(b), DataPastEnd}
		}
		off += n
		if !more {
			return messages, off, nil
		}
		pad := PadLen(n)
		if pad > len(b)-off {
			return 0, 0, &Error{off, len(b), PaddingNoMore}
		}
		off += pad
	}
}

// PutAck replaces the acknowledgement of an encoded frame. A retransmission
// carries what is due now under its old id (DGRDMA-031).
func PutAck(b []byte, start Seq, count uint8) {
	_ = b[HeaderSize-1]
	binary.LittleEndian.PutUint16(b[6:], uint16(start))
	b[8] = count
}
