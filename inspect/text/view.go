package text

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// Kind is what a frame is for.
type Kind uint8

const (
	None  Kind = iota // too short for a header
	Empty             // neither messages nor an acknowledgement
	Ack
	Write
	Sealed
	Handshake // for keys
	// These are of sessions.
	Bell
	Bye
	Probe
	Probed
	Reset
	// These are of the handshake for a session.
	Hello
	Welcome
	Confirm
	Reject
	Refused
)

var kindNames = [...]string{
	None: "none", Empty: "empty", Ack: "ack", Write: "write", Sealed: "sealed", Handshake: "handshake",
	Bell: "bell", Bye: "bye", Probe: "probe", Probed: "probed", Reset: "reset",
	Hello: "hello", Welcome: "welcome", Confirm: "confirm", Reject: "reject", Refused: "refused",
}

// shakes are what frames of a handshake for a session are for.
var shakes = map[frame.HandshakeKind]Kind{
	frame.HandshakeHello: Hello, frame.HandshakeWelcome: Welcome, frame.HandshakeConfirm: Confirm, frame.HandshakeReject: Reject, frame.HandshakeRefused: Refused,
}

func (k Kind) String() string { return kindNames[k] }

// Message is a message in a frame.
type Message struct {
	frame.Message
	Offset int    // from the start of the frame header
	Data   []byte // shorter than Len where the frame is cut or malformed
}

// View is a frame of a capture, taken apart as far as it goes. It is valid as
// long as its packet.
type View struct {
	Packet        *captured.Packet
	Kind          Kind
	Header        frame.Header // unless Kind is None; of what is sealed, of handshakes and of sessions, ids and flags
	InSession     bool
	SessionHeader frame.SessionHeader // if InSession, unless Kind is None
	Session       frame.SessionFrame  // likewise, if it was captured whole and nothing is wrong with it
	Messages      []Message
	Shake         frame.Handshake // if the Kind is one of its
	Services      frame.Services
	Told          bool // what the Services are
	Refusal       frame.Refusal
	Why           bool // the Refusal is there
	Seal          datagram.Kind
	Checksum      frame.Checksum
	Padding       []byte       // behind the last message, the services, or the refusal
	Malformed     *frame.Error // what is wrong, if anything is
}

// Decode makes v a view of p. It uses the room that v had before.
func (v *View) Decode(p *captured.Packet) {
	*v = View{Packet: p, Messages: v.Messages[:0], Seal: p.Seal()}
	if v.Seal != datagram.Plain {
		v.sealed()
		return
	}
	if p.Session() {
		v.session()
		return
	}
	b, sum := p.Whole()
	v.Checksum = sum
	f, err := frame.Parse(b)
	if err == nil {
		v.whole(&f)
	} else {
		v.partly(err.(*frame.Error))
	}
	switch {
	case v.Kind == None:
	case v.Header.HasMessages():
		v.Kind = Write
		if len(v.Messages) == 1 {
			v.shakes(&v.Messages[0].Message)
		}
	case v.Header.AckCount != 0:
		v.Kind = Ack
	default:
		v.Kind = Empty
	}
}

// shakes takes a message that is of a handshake for a session, if it is.
func (v *View) shakes(m *frame.Message) {
	h, ok := frame.HandshakeOf(&frame.Frame{Header: v.Header}, m)
	if ok {
		v.Kind, v.Shake = shakes[h.Kind], h
	}
}

// isShake reports whether the frame is of a handshake for a session.
func (v *View) isShake() bool { return v.Shake.Kind != frame.NoHandshake }

// appendShake appends a frame of a handshake as lines have it.
func (v *View) appendShake(b []byte) []byte {
	var services *frame.Services
	if v.Told {
		services = &v.Services
	}
	var refusal *frame.Refusal
	if v.Why {
		refusal = &v.Refusal
	}
	return v.Header.AppendHandshake(b, &v.Shake, services, refusal)
}

func (v *View) whole(f *frame.Frame) {
	v.Kind, v.Header = Empty, f.Header
	off := frame.HeaderSize
	for c := f.Cursor(); c.Next(); {
		v.Messages = append(v.Messages, Message{c.Msg, off, c.Data})
		off = next(off, &c.Msg)
	}
	v.Services, v.Told = f.Services()
	if v.Refusal, v.Why = f.Refusal(); !v.Why {
		v.Refusal, v.Why = f.Identity()
	}
	v.Padding = f.Padding()
}

// next returns where the message behind the one at off begins.
func next(off int, m *frame.Message) int {
	end := off + frame.MessageHeaderSize + int(m.Len)
	return end + frame.PadLen(end-frame.HeaderSize)
}

// partly takes apart what frame.Parse refused. In a frame that was cut, only what
// would be wrong with the whole is wrong.
func (v *View) partly(refused *frame.Error) {
	p := v.Packet
	h, ok := p.Header()
	if ok {
		v.Kind, v.Header = Empty, h
	}
	off, more := frame.HeaderSize, ok && h.HasMessages()
	for m, data := range p.Messages() {
		v.Messages = append(v.Messages, Message{m, off, data})
		if p.Cut() && off+frame.MessageHeaderSize+int(m.Len) > p.Length {
			v.Malformed = &frame.Error{Off: off, Len: p.Length, Reason: frame.DataPastEnd}
			return
		}
		off, more = next(off, &m), m.More
	}
	switch {
	case !p.Cut():
		v.Malformed = refused
	case p.Length < frame.HeaderSize:
		v.Malformed = &frame.Error{Len: p.Length, Reason: frame.ShortHeader}
	case more && off+frame.MessageHeaderSize > p.Length:
		v.Malformed = &frame.Error{Off: off, Len: p.Length, Reason: frame.ShortMessage}
	}
}
