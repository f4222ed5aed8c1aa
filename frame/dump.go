package frame

import (
	"log/slog"
	"strconv"
)

// String describes h in one line, source first.
func (h Header) String() string { return string(h.Append(nil)) }

// Append appends what String returns.
func (h *Header) Append(b []byte) []byte {
	b = h.ends(b)
	b = number(b, " id ", uint32(h.Seq))
	if h.AckCount != 0 {
		b = number(b, " ack ", uint32(h.AckStart))
		b = number(b, "+", uint32(h.AckCount))
	}
	return h.marks(b)
}

func (h *Header) ends(b []byte) []byte {
	return number(number(b, "", uint32(h.Src)), "->", uint32(h.Dst))
}

func (h *Header) marks(b []byte) []byte {
	switch {
	case h.Flags&^(FlagMessages|FlagChecksum) != 0:
		b = hexadecimal(b, " flags ", uint32(h.Flags))
	case h.Flags&FlagChecksum != 0:
		b = append(b, " checksum"...)
	}
	return b
}

// String describes h in one line, source first.
func (h SessionHeader) String() string { return string(h.Append(nil)) }

// Append appends what String returns.
func (h *SessionHeader) Append(b []byte) []byte {
	b = number(b, "", uint32(h.Src))
	b = number(b, "->", uint32(h.Dst))
	b = append(append(b, ' '), h.Control.String()...)
	switch h.Control {
	case NoControl, ControlBell:
		b = number(b, " id ", h.ID)
	case ControlAck, ControlReset:
		b = number(b, " of id ", h.ID)
	}
	if h.Copy != 0 {
		b = number(b, " copy ", uint32(h.Copy))
	}
	b = number(b, " up to ", h.Ack)
	b = hexadecimal(b, " tag ", h.Tag)
	if h.Checks {
		b = append(b, " checksum"...)
	}
	return b
}

// Append appends what a says, in words, of its ranges so many at most.
func (a *SessionAck) Append(b []byte, ranges int) []byte {
	b = a.Marks.Append(a.Echo(b))
	for i := range a.Ranges.Len() {
		if i == ranges {
			b = number(b, " and ", uint32(a.Ranges.Len()-i))
			return append(b, " more"...)
		}
		between := ", also "
		if i > 0 {
			between = " "
		}
		r := a.Ranges.At(i)
		b = number(b, between, r.First)
		b = number(b, "+", uint32(r.Count))
	}
	return b
}

// Append appends what m says, in words.
func (m Marks) Append(b []byte) []byte {
	if m == (Marks{}) {
		return b
	}
	b = number(b, ", came ", m.Capable)
	b = number(b, " ECT(0) and ", m.Congested)
	return append(b, " CE"...)
}

// Echo appends what a says of the frame that arrived last, in words.
func (a *SessionAck) Echo(b []byte) []byte {
	if a.Copy != 0 {
		b = append(number(b, "copy ", uint32(a.Copy)), ", "...)
	}
	if a.Again {
		b = append(b, "had come before, "...)
	}
	if b = number(b, "", uint32(a.Delay)); a.Delay == LongestDelay {
		return append(b, " µs ago or more"...)
	}
	return append(b, " µs ago"...)
}

// Append appends what y says, in words.
func (y Bye) Append(b []byte) []byte {
	b = number(b, "reason ", uint32(y.Reason))
	b = number(b, ", epoch ", y.Sender)
	return number(b, " to epoch ", y.Receiver)
}

// AppendControl appends what a control frame says after its header, in words, with so many ranges at most.
func (f *SessionFrame) AppendControl(b []byte, ranges int) []byte {
	if a, ok := f.SessionAck(); ok {
		return append(a.Append(append(b, " ["...), ranges), ']')
	}
	if y, ok := f.Bye(); ok {
		return append(y.Append(append(b, " ["...)), ']')
	}
	if size, ok := f.Probe(); ok {
		return append(number(b, " [", uint32(size)), " bytes]"...)
	}
	return b
}

// String describes the frame and each of its messages in one line.
func (f SessionFrame) String() string {
	b := f.AppendControl(f.SessionHeader.Append(nil), MostRanges)
	for c := f.Cursor(); c.Next(); {
		b = append(c.Msg.Append(append(b, " ["...)), ']')
	}
	return string(b)
}

// String describes m in one line.
func (m Message) String() string { return string(m.Append(nil)) }

// Append appends what String returns.
func (m *Message) Append(b []byte) []byte {
	b = number(b, "txn ", m.Txn)
	b = number(b, " ", uint32(m.Index))
	b = number(b, "/", uint32(m.Count))
	if m.Len != 0 {
		b = number(b, " ", uint32(m.Len))
		b = hexadecimal(b, " bytes at ", m.Addr)
	}
	if m.Completes() {
		b = hexadecimal(b, " then ", m.CompletionValue)
		b = hexadecimal(b, " at ", m.CompletionAddr)
	}
	if m.Type != 0 {
		b = number(b, " type ", uint32(m.Type))
	}
	return b
}

// Append appends what h says, in words, in a frame to dst.
func (h *Handshake) Append(b []byte, dst EndpointID) []byte {
	b = append(b, h.Kind.String()...)
	if h.Kind == HandshakeRefused {
		return number(b, " to epoch ", h.Receiver)
	}
	b = number(b, " from epoch ", h.Sender)
	switch {
	case h.Receiver != 0:
		return number(b, " to epoch ", h.Receiver)
	case dst == 0:
		return append(b, ", asks who is there"...)
	}
	return b
}

// AppendHandshake appends a frame with this header, which is of a handshake, in words. services is nil where it has none, and refusal where it has neither
// a refusal nor an identity.
func (h *Header) AppendHandshake(b []byte, is *Handshake, services *Services, refusal *Refusal) []byte {
	b = h.marks(h.ends(b))
	b = is.Append(append(b, " ["...), h.Dst)
	if services != nil {
		b = services.Append(append(b, ", "...))
	}
	switch {
	case refusal == nil:
	case is.Kind == HandshakeRefused:
		b = refusal.Append(append(b, ": "...))
	default:
		b = refusal.AppendIdentity(append(b, ", "...))
	}
	return append(b, ']')
}

// Append appends what r says, in words.
func (r *Refusal) Append(b []byte) []byte {
	return r.AppendIdentity(append(append(b, whyTexts[r.Why]...), ", "...))
}

// AppendIdentity appends who the sender is, in words.
func (r *Refusal) AppendIdentity(b []byte) []byte {
	b = number(b, "endpoint ", uint32(r.ID))
	if r.Size == 0 {
		return b
	}
	b = strconv.AppendUint(append(b, " with "...), r.Size, 10)
	return append(b, " bytes"...)
}

// String lists the names, or says that there is none.
func (s *Services) String() string { return string(s.names(nil)) }

func (s *Services) names(b []byte) []byte {
	if s.n == 0 {
		return append(b, "no service"...)
	}
	for i := range s.n {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = s.list[i].Name.Append(b)
	}
	return b
}

// Append appends what s says, in words.
func (s *Services) Append(b []byte) []byte {
	if s.n > 0 {
		b = append(b, "serves "...)
	}
	b = s.names(b)
	if s.Known > 0 {
		b = append(number(b, " (knows ", uint32(s.Known)), ')')
	}
	return b
}

// String describes the frame and each of its messages in one line.
func (f Frame) String() string {
	if h, ok := f.Handshake(); ok {
		var said *Services
		var why *Refusal
		if s, ok := f.Services(); ok {
			said = &s
		}
		if r, ok := f.Refusal(); ok {
			why = &r
		} else if r, ok := f.Identity(); ok {
			why = &r
		}
		return string(f.Header.AppendHandshake(nil, &h, said, why))
	}
	b := f.Header.Append(nil)
	for c := f.Cursor(); c.Next(); {
		b = append(c.Msg.Append(append(b, " ["...)), ']')
	}
	return string(b)
}

func number(b []byte, before string, n uint32) []byte {
	return strconv.AppendUint(append(b, before...), uint64(n), 10)
}

func hexadecimal(b []byte, before string, n uint32) []byte {
	return strconv.AppendUint(append(append(b, before...), "0x"...), uint64(n), 16)
}

// LogValue makes a frame readable in structured logs.
func (f Frame) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("src", int(f.Src)), slog.Int("dst", int(f.Dst)),
		slog.Int("id", int(f.Seq)),
		slog.Int("ackStart", int(f.AckStart)), slog.Int("ackCount", int(f.AckCount)),
		slog.Int("messages", f.messages))
}
