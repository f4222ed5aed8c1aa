package text

import (
	"github.com/dgrdma/dgrdma/frame"
)

// sessionKinds are what frames of a session are for, by their control.
var sessionKinds = map[frame.Control]Kind{
	frame.NoControl: Write, frame.ControlAck: Ack, frame.ControlBye: Bye, frame.ControlProbe: Probe,
	frame.ControlProbed: Probed, frame.ControlReset: Reset, frame.ControlBell: Bell,
}

// session takes apart a frame of a session.
func (v *View) session() {
	p := v.Packet
	h, _ := p.Header()
	v.Header = frame.Header{Dst: h.Dst, Src: h.Src, Flags: h.Flags}
	b, sum := p.Whole()
	v.InSession, v.Checksum = true, sum
	header, ok := p.SessionHeader()
	off, more := frame.SessionHeaderSize, ok && header.Control == frame.NoControl
	for m, data := range p.Messages() {
		v.Messages = append(v.Messages, Message{m, off, data})
		if p.Cut() && off+frame.MessageHeaderSize+int(m.Len) > p.Length {
			v.Malformed = &frame.Error{Off: off, Len: p.Length, Reason: frame.DataPastEnd}
			more = false
			break
		}
		off, more = next(off, &m), m.More
	}
	if ok {
		v.Kind = sessionKinds[header.Control] // None: of no kind that there is
	}
	if v.SessionHeader = header; p.Cut() {
		if more && off+frame.MessageHeaderSize > p.Length {
			v.Malformed = &frame.Error{Off: off, Len: p.Length, Reason: frame.ShortMessage}
		}
		if n, known := frame.ControlSize(p.Data); ok && known && header.Control != frame.NoControl && n <= len(p.Data) {
			_ = v.Session.Decode(p.Data[:n]) // what it says is there, and only what follows is not
		}
		return
	}
	if err := v.Session.Decode(b); err != nil {
		v.Malformed = err.(*frame.Error)
		return
	}
	v.Padding = v.Session.Padding()
}

// list returns the services that a message of a session tells of.
func (v *View) list(m *Message) (s frame.Services, ok bool) {
	if !v.InSession || m.Type != frame.TypeServices || m.Count != 0 || len(m.Data) != int(m.Len) {
		return s, false
	}
	return frame.ParseServices(m.Data)
}

// appendSession appends a frame of a session as lines have it, without its messages.
func (v *View) appendSession(b []byte) []byte {
	if v.Kind == None {
		b = number(b, "", int(v.Header.Src))
		b = number(b, "->", int(v.Header.Dst))
		return hexadecimal(b, " flags ", uint32(v.Header.Flags))
	}
	return v.Session.AppendControl(v.SessionHeader.Append(b), lineRanges)
}

// lineRanges is how many ranges of an acknowledgement a line shows.
const lineRanges = 8

// fieldsSession appends all fields of a frame of a session.
func (v *View) fieldsSession(b []byte) []byte {
	h := &v.SessionHeader
	b = append(b, "  session frame"...)
	if v.Kind == Write || v.Kind == Bell {
		b = number(b, " ", int(h.ID))
	}
	b = number(b, " from endpoint ", int(v.Header.Src))
	b = number(b, " to endpoint ", int(v.Header.Dst))
	if v.Kind == Write || v.Kind == Bell {
		b = number(b, ", copy ", int(h.Copy))
	}
	if v.Kind != None {
		b = hexadecimal(b, ", tag ", h.Tag)
	}
	if v.Kind != None && v.Kind != Reset {
		b = number(b, ", acknowledges all up to ", int(h.Ack))
	}
	b = hexadecimal(b, ", flags ", uint32(v.Header.Flags))
	b = append(append(append(b, " ("...), v.Kind.String()...), ")\n"...)
	if v.Kind == Reset {
		b = number(b, "  answers frame ", int(h.ID))
		b = number(b, ", copy ", int(h.Copy))
		b = number(b, ", which acknowledged all up to ", int(h.Ack))
		b = append(b, ": it is of a session that its receiver does not have\n"...)
	}
	if a, ok := v.Session.SessionAck(); ok {
		b = number(b, "  frame ", int(h.ID))
		b = append(a.Marks.Append(a.Echo(append(b, " came last: "...))), '\n')
		for i := range a.Ranges.Len() {
			r := a.Ranges.At(i)
			b = number(b, "  acknowledges ", r.Count)
			b = append(number(b, " from ", int(r.First)), '\n')
		}
	}
	if y, ok := v.Session.Bye(); ok {
		b = append(y.Append(append(b, "  "...)), '\n')
	}
	if size, ok := v.Session.Probe(); ok {
		what := "  asks whether frames of "
		if v.Kind == Probed {
			what = "  answers: the longest question that came had "
		}
		b = number(b, what, size)
		if b = append(b, " bytes"...); v.Kind == Probe {
			b = append(b, " arrive"...)
		}
		b = append(b, '\n')
	}
	return b
}

// jsonSession appends what a frame of a session has.
func (v *View) jsonSession(b []byte) []byte {
	b = number(b, `,"src":`, int(v.Header.Src))
	b = number(b, `,"dst":`, int(v.Header.Dst))
	h := &v.SessionHeader
	if v.Kind == Write || v.Kind == Bell {
		b = number(b, `,"id":`, int(h.ID))
	}
	b = number(b, `,"flags":`, int(v.Header.Flags))
	if v.Kind == None {
		return b
	}
	b = number(b, `,"session":{"tag":`, int(h.Tag))
	switch v.Kind {
	case Write, Bell:
		b = number(b, `,"copy":`, int(h.Copy))
	case Reset:
		b = number(b, `,"answers":{"id":`, int(h.ID))
		b = number(b, `,"copy":`, int(h.Copy))
		return append(number(b, `,"up_to":`, int(h.Ack)), "}}"...)
	}
	b = number(b, `,"up_to":`, int(h.Ack))
	if a, ok := v.Session.SessionAck(); ok {
		b = number(b, `,"echo":{"id":`, int(h.ID))
		b = number(b, `,"copy":`, int(a.Copy))
		b = boolean(b, `,"again":`, a.Again)
		b = append(number(b, `,"delay_us":`, a.Delay), `},"ranges":[`...)
		for i := range a.Ranges.Len() {
			r := a.Ranges.At(i)
			b = number(comma(b, i), `{"first":`, int(r.First))
			b = append(number(b, `,"count":`, r.Count), '}')
		}
		b = append(b, ']')
		if m := a.Marks; m != (frame.Marks{}) {
			b = number(b, `,"marks":{"ect0":`, int(m.Capable))
			b = append(number(b, `,"ce":`, int(m.Congested)), '}')
		}
	}
	if y, ok := v.Session.Bye(); ok {
		b = number(b, `,"reason":`, int(y.Reason))
		b = number(b, `,"sender":`, int(y.Sender))
		b = number(b, `,"receiver":`, int(y.Receiver))
	}
	if size, ok := v.Session.Probe(); ok {
		b = number(b, `,"size":`, size)
	}
	return append(b, '}')
}
