package text

import "github.com/dgrdma/dgrdma/inspect/iwarp"

// eventFields is the line of an event, and what else there is to know.
func (p *Printer) eventFields(b []byte, e *iwarp.Event) []byte {
	b = append(p.eventHead(b, e), '\n')
	b = number(b, "  connection ", e.Conn.Number)
	if known(e.Last.Time) {
		b = p.date(append(b, ", "...), e.Last.Time)
	}
	b = append(b, '\n')
	data, at := e.Payload, e.Header.TO
	switch e.Kind {
	case iwarp.SetUp:
		data, at = e.SetUp.Private, 0
	case iwarp.Frame:
		b = p.frameFields(b, e)
		if !e.Header.Tagged {
			at = uint64(e.Header.MO)
		}
	}
	if p.Bytes {
		b = dumpAt(b, data, at, 16)
	}
	return b
}

func (p *Printer) frameFields(b []byte, e *iwarp.Event) []byte {
	h := &e.Header
	if e.Segments > 0 {
		b = hexadecimal(b, "  control octet ", uint32(h.Control))
		if !h.Tagged {
			b = hexadecimal(b, ", invalidate field ", h.Invalidate)
		}
		b = number(b, ", segment ", e.Segments)
		b = number(b, " of its message, of which there are ", int(e.Message))
		b = append(b, " bytes\n"...)
	}
	if e.CutEnd {
		b = append(b, "  pad and CRC are in several segments of TCP\n"...)
	}
	return b
}
