package text

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

func (p *Printer) fields(b []byte, v *View) []byte {
	k := v.Packet
	if p.File != "" {
		b = append(append(b, p.file().plain...), ": "...)
	}
	b = number(b, "record ", k.Record)
	if k.Segment > 0 {
		b = number(b, ", datagram ", k.Segment)
		b = number(b, " of ", k.Segments)
	}
	b = number(b, ", interface ", k.Interface)
	if k.Name != "" {
		b = iface(append(b, ' '), v)
	}
	if known(k.Time) {
		b = p.date(append(b, ", "...), k.Time)
		b = append(p.since(append(b, ", "...), k.Time), " s\n"...)
	} else {
		b = append(b, ", no time\n"...)
	}

	b = ends(append(append(b, "  "...), wire(v)...), v, " ", " > ")
	if len(k.Prefix) > 0 {
		b = hexBytes(append(b, ", prefix "...), k.Prefix)
	}
	b = number(b, ", ", k.Length)
	if b = append(b, " bytes"...); k.Cut() {
		b = number(b, ", cut: ", len(k.Data))
		b = append(b, " captured"...)
	}
	b = append(b, '\n')

	switch {
	case v.Seal != datagram.Plain:
		b = v.fieldsSealed(b)
	case v.InSession:
		b = v.fieldsSession(b)
	case v.Kind != None:
		b = p.header(b, v)
	}
	for i := range v.Messages {
		b = p.message(b, v, &v.Messages[i])
	}
	if len(v.Padding) > 0 {
		b = number(b, "  padding ", len(v.Padding))
		b = hexBytes(append(b, " bytes "...), v.Padding[:min(len(v.Padding), mostPadding)])
		if len(v.Padding) > mostPadding {
			b = append(b, "..."...)
		}
		b = append(b, '\n')
	}
	switch v.Checksum {
	case frame.RightChecksum:
		b = append(b, "  checksum right\n"...)
	case frame.WrongChecksum:
		b = append(b, "  checksum wrong: the frame was changed on the way\n"...)
	}
	if v.Malformed != nil {
		b = append(problem(append(b, "  "...), v.Malformed), '\n')
	}
	return b
}

// mostPadding is what is shown of padding: with all of it that of a short frame
// on Ethernet fits.
const mostPadding = 36

func (p *Printer) header(b []byte, v *View) []byte {
	h := &v.Header
	b = append(b, "  frame"...)
	if !v.isShake() {
		b = number(b, " ", int(h.Seq))
	}
	b = number(b, " from endpoint ", int(h.Src))
	b = number(b, " to endpoint ", int(h.Dst))
	if v.isShake() {
		b = number(b, ", check ", int(v.Shake.Check))
	} else {
		b = number(b, ", acknowledges ", int(h.AckCount))
		b = number(b, " from ", int(h.AckStart))
	}
	b = hexadecimal(b, ", flags ", uint32(h.Flags))
	return append(append(append(b, " ("...), v.Kind.String()...), ")\n"...)
}

func (p *Printer) message(b []byte, v *View, m *Message) []byte {
	b = number(b, "  message at byte ", m.Offset)
	b = number(b, ": transaction ", int(m.Txn))
	b = number(b, ", index ", int(m.Index))
	b = number(b, " of ", int(m.Count))
	b = number(b, ", ", int(m.Len))
	b = hexadecimal(b, " bytes at ", m.Addr)
	if m.Completes() {
		b = hexadecimal(b, ", completion ", m.CompletionValue)
		b = hexadecimal(b, " at ", m.CompletionAddr)
	} else {
		b = append(b, ", no completion"...)
	}
	b = number(b, ", type ", int(m.Type))
	if m.More {
		b = append(b, ", more"...)
	}
	b = append(b, '\n')
	if v.isShake() {
		b = v.Shake.Append(append(b, "  "...), v.Header.Dst)
		switch {
		case v.Why && v.Shake.Kind == frame.HandshakeWelcome:
			b = v.Refusal.AppendIdentity(append(b, ", "...))
		case v.Why:
			b = v.Refusal.Append(append(b, ": "...))
		}
		b = append(b, '\n')
	}
	if s, ok := v.list(m); ok {
		b = fieldsServices(b, &s)
	}
	if v.Told {
		b = fieldsServices(b, &v.Services)
	}
	if p.Bytes {
		b = dump(b, m)
	}
	return b
}

func fieldsServices(b []byte, s *frame.Services) []byte {
	if len(s.All()) == 0 {
		return append(s.Append(append(b, "  "...)), '\n')
	}
	for _, x := range s.All() {
		b = x.Name.Append(append(b, "  service "...))
		b = append(hexadecimal(b, " from ", x.Base), '\n')
	}
	if s.Known > 0 {
		b = append(number(b, "  knows ", s.Known), '\n')
	}
	return b
}

// dump appends the data as it will lie in the memory.
func dump(b []byte, m *Message) []byte { return dumpAt(b, m.Data, uint64(m.Addr), 8) }

// dumpAt appends data from an address of so many digits on: sixteen bytes in a line, in front of them their address.
func dumpAt(b, data []byte, addr uint64, digits int) []byte {
	const width = 16
	for at := 0; at < len(data); at += width {
		row := data[at:min(at+width, len(data))]
		b = append(b, "    "...)
		for shift := 4*digits - 8; shift >= 0; shift -= 8 {
			b = hexByte(b, byte((addr+uint64(at))>>shift))
		}
		b = append(b, ' ')
		for i := range width {
			if b = append(b, ' '); i < len(row) {
				b = hexByte(b, row[i])
			} else {
				b = append(b, "  "...)
			}
		}
		b = append(b, "  "...)
		for _, x := range row {
			if x < ' ' || x > '~' {
				x = '.'
			}
			b = append(b, x)
		}
		b = append(b, '\n')
	}
	return b
}
