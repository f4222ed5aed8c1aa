package frame

import "encoding/binary"

// Between endpoints of our own kind, after the handshake, frames have a header of 18 bytes. An
// endpoint of another kind that gets one sees a frame without messages that acknowledges nothing.

const (
	// FlagSession is set in a session frame, and in no other that has no seal.
	FlagSession = 4

	flagSealed  = 0x80
	flagControl = 0x40
	copyShift   = 3
	copyMask    = 7 << copyShift
)

const (
	// SessionHeaderSize is the length of a session header in bytes.
	SessionHeaderSize = 18
	// MostCopies is the highest copy number: of the seventh retransmission, and of all after it.
	MostCopies = 7
)

// SessionHeader is the header of a frame between endpoints of our own kind:
//
//	offset  size  field
//	0       2     destination endpoint id
//	2       2     source endpoint id
//	4       4     frame id
//	8       1     0
//	9       1     flags; bit 1: the frame ends with a checksum; bit 2: set; bits 3 to 5: copy number;
//	              bit 6: a control frame; bits 0 and 7: clear
//	10      4     tag
//	14      4     cumulative acknowledgement
//
// In a data frame messages follow, as after a [Header]. In a control frame the next byte is its [Control].
type SessionHeader struct {
	Dst, Src EndpointID
	// ID is counted in 32 bits, one sequence for each direction of a session. In an ACK it is the id of the frame that
	// arrived last, and in a RESET that of the frame that it answers. PROBE, PROBED and BYE have none.
	ID uint32
	// Copy is 0 in the first transmission of an id, and counts the others up to MostCopies.
	Copy uint8
	// Tag names the session: it is made of the epochs of both endpoints.
	Tag uint32
	// Ack is the id up to which all frames of the other direction have arrived.
	Ack     uint32
	Control Control // NoControl: a data frame
	Checks  bool    // the frame ends with a checksum, see [FlagChecksum]
}

// Control is the kind of a control frame, its byte 18.
type Control uint8

const (
	NoControl     Control = iota
	ControlAck            // [SessionAck]
	ControlBye            // [Bye]
	ControlProbe          // asks whether frames of its length arrive: bytes 20 and 21 are that length, and zeros follow up to it
	ControlProbed         // answers: bytes 20 and 21 are the length of the longest ControlProbe that arrived
	ControlReset          // the receiver does not have the session; the header is that of the frame that it answers
	// ControlBell is a frame without messages that has an id, and is acknowledged and sent again as data is.
	ControlBell
	controls
)

var controlNames = [controls]string{"data", "ACK", "BYE", "PROBE", "PROBED", "RESET", "BELL"}

func (c Control) String() string {
	if c < controls {
		return controlNames[c]
	}
	return "control " + string(number(nil, "", uint32(c)))
}

// controlSizes are the least lengths of control frames.
var controlSizes = [controls]int{0, ackSize, byeSize, probeSize, probeSize, SessionHeaderSize + 1, SessionHeaderSize + 1}

// IsSession reports whether b is a session frame, or would be if it is cut. The flag alone does not say so: it is reserved in frames of
// another kind, and ignored there (DGRDMA-015). Where that has its count and its messages, b says none.
func IsSession(b []byte) bool {
	return len(b) >= HeaderSize && b[flagsAt]&(flagSealed|FlagSession|FlagMessages) == FlagSession && b[countAt] == 0
}

// Put writes h to the beginning of b: SessionHeaderSize bytes, and one more of a control frame. If it
// Checks, [PutChecksum] or [AddChecksum] follow when the frame is complete.
func (h *SessionHeader) Put(b []byte) {
	_ = b[SessionHeaderSize-1]
	le := binary.LittleEndian
	le.PutUint16(b[0:], uint16(h.Dst))
	le.PutUint16(b[2:], uint16(h.Src))
	le.PutUint32(b[4:], h.ID)
	b[8] = 0
	flags := FlagSession | min(h.Copy, MostCopies)<<copyShift
	if h.Control != NoControl {
		flags |= flagControl
		b[SessionHeaderSize] = uint8(h.Control)
	}
	if h.Checks {
		flags |= FlagChecksum
	}
	b[flagsAt] = flags
	le.PutUint32(b[10:], h.Tag)
	le.PutUint32(b[14:], h.Ack)
}

func (h *SessionHeader) get(b []byte) {
	_ = b[SessionHeaderSize-1]
	le := binary.LittleEndian
	h.Dst, h.Src = IDsOf(b)
	h.ID = le.Uint32(b[4:])
	h.Copy = b[flagsAt] & copyMask >> copyShift
	h.Checks = b[flagsAt]&FlagChecksum != 0
	h.Tag = le.Uint32(b[10:])
	h.Ack = le.Uint32(b[14:])
	h.Control = NoControl
	if b[flagsAt]&flagControl != 0 {
		h.Control = Control(b[SessionHeaderSize])
	}
}

// SessionHeaderOf returns the header with which b begins, and does not ask whether what follows makes sense. Not
// ok: b is no session frame, or ends within its header, of which the kind of a control frame is a part.
func SessionHeaderOf(b []byte) (h SessionHeader, ok bool) {
	if len(b) < SessionHeaderSize || !IsSession(b) || b[flagsAt]&flagControl != 0 && len(b) == SessionHeaderSize {
		return h, false
	}
	h.get(b)
	return h, true
}

// PutSessionAck replaces the cumulative acknowledgement of an encoded session frame.
func PutSessionAck(b []byte, upTo uint32) { binary.LittleEndian.PutUint32(b[14:], upTo) }

// PutCopy replaces the copy number of an encoded session frame.
func PutCopy(b []byte, n uint8) {
	b[flagsAt] = b[flagsAt]&^copyMask | min(n, MostCopies)<<copyShift
}

// SessionFrame is a parsed session frame: a view of the datagram it came from.
type SessionFrame struct {
	SessionHeader
	body     []byte // after the header; what follows the last message is its capacity
	messages int
}

// ParseSession reads a session frame, without its checksum, and checks all of it. The error is an *[Error].
func ParseSession(b []byte) (f SessionFrame, err error) {
	err = f.Decode(b)
	return f, err
}

// Decode is [ParseSession] into f. After an error f is as before.
func (f *SessionFrame) Decode(b []byte) error {
	if len(b) < SessionHeaderSize {
		return &Error{0, len(b), ShortSession}
	}
	if !IsSession(b) {
		return &Error{8, len(b), NoSession}
	}
	if b[flagsAt]&flagControl != 0 {
		if err := checkControl(b); err != nil {
			return err
		}
		f.get(b)
		f.body, f.messages = b[SessionHeaderSize:len(b):len(b)], 0
		return nil
	}
	messages, end, err := chain(b, SessionHeaderSize)
	if err == nil {
		f.get(b)
		f.body, f.messages = b[SessionHeaderSize:end:len(b)], messages
	}
	return err
}

// Messages returns the number of messages in the frame.
func (f *SessionFrame) Messages() int { return f.messages }

// Body returns the bytes of the messages with the padding between them, or what a control frame says after its header.
func (f *SessionFrame) Body() []byte {
	n := len(f.body)
	if f.Control != NoControl {
		n -= len(f.Padding())
	}
	return f.body[:n:n]
}

// Padding returns what follows the last message, or all that a control frame says.
func (f *SessionFrame) Padding() []byte {
	said := len(f.body)
	switch f.Control {
	case NoControl:
	case ControlAck:
		a, _ := f.SessionAck()
		said = ackSize - SessionHeaderSize + a.Ranges.Len()*rangeSize + marksOf(f.body[1])
	case ControlProbe: // its zeros are what it asks with
	default:
		said = controlSizes[f.Control] - SessionHeaderSize
	}
	return f.body[said:cap(f.body)]
}

// Size returns the length of the frame, without its checksum and with what follows the last message.
func (f *SessionFrame) Size() int { return SessionHeaderSize + cap(f.body) }

// Cursor returns a cursor before the first message.
func (f *SessionFrame) Cursor() Cursor {
	if f.messages == 0 {
		return Cursor{}
	}
	return Cursor{rest: f.body}
}
