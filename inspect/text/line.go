package text

import (
	"strconv"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// lineMessages is how many messages a line shows: a frame can have thousands.
const lineMessages = 8

func (p *Printer) line(b []byte, v *View) []byte {
	if p.File != "" {
		b = append(append(b, p.file().plain...), ": "...)
	}
	b = place(b, v)
	switch t := v.Packet.Time; {
	case !known(t):
		b = append(b, " -"...)
	case p.Absolute:
		b = p.date(append(b, ' '), t)
	default:
		b = p.since(append(b, ' '), t)
	}
	if p.Interfaces {
		b = iface(append(b, ' '), v)
	}
	b = ends(b, v, " ", " > ")
	switch {
	case v.Seal != datagram.Plain:
		b = v.appendSealed(append(b, ' '))
	case v.InSession:
		b = v.appendSession(append(b, ' '))
	case v.isShake():
		b = v.appendShake(append(b, ' '))
	case v.Kind != None:
		b = v.Header.Append(append(b, ' '))
	}
	for i := range v.Messages {
		if v.isShake() {
			break // its message is told
		}
		if i == lineMessages {
			b = number(b, " and ", len(v.Messages)-i)
			b = append(b, " more"...)
			break
		}
		b = v.Messages[i].Append(append(b, " ["...))
		if s, ok := v.list(&v.Messages[i]); ok {
			b = s.Append(append(b, ", "...))
		}
		b = append(b, ']')
	}
	if v.Packet.Cut() {
		b = number(b, " cut: ", len(v.Packet.Data))
		b = number(b, " of ", v.Packet.Length)
		b = append(b, " bytes"...)
	}
	if v.Checksum == frame.WrongChecksum {
		b = append(b, " checksum wrong"...)
	}
	if v.Malformed != nil {
		b = problem(append(b, ' '), v.Malformed)
	}
	return append(b, '\n')
}

// iface appends the name of the interface as one word, or its number.
func iface(b []byte, v *View) []byte {
	switch name := v.Packet.Name; {
	case name == "":
		return number(b, "#", v.Packet.Interface)
	case isWord(name):
		return append(b, name...)
	default:
		return strconv.AppendQuote(b, name)
	}
}

// isWord reports whether a name needs no quotes, nor escapes in them. A file may say anything.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// place appends the number of the record, and which datagram in it, aligned.
func place(b []byte, v *View) []byte {
	const width = 6
	at := len(b)
	b = strconv.AppendInt(b, int64(v.Packet.Record), 10)
	if v.Packet.Segment > 0 {
		b = number(b, ".", v.Packet.Segment)
	}
	if short := width - (len(b) - at); short > 0 {
		b = append(b, "      "[:short]...)
	}
	return b
}
