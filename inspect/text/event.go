package text

import (
	"slices"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
)

// AppendEvent appends the text for an event of iWARP, and a newline.
func (p *Printer) AppendEvent(b []byte, e *iwarp.Event) []byte {
	p.passes(e.Last.Record)
	switch p.Style {
	case JSON:
		return p.eventJSON(b, e)
	case Fields:
		return p.eventFields(b, e)
	}
	return append(p.eventHead(b, e), '\n')
}

// eventHead is a line without its end.
func (p *Printer) eventHead(b []byte, e *iwarp.Event) []byte {
	b = eventWords(append(p.lineStart(b, e), ' '), e)
	if p.behind && e.Late != "" {
		b = append(append(b, "; late: "...), e.Late...)
	}
	return b
}

// lineStart is what a line begins with: where, when, and which side sent it.
func (p *Printer) lineStart(b []byte, e *iwarp.Event) []byte {
	if p.File != "" {
		b = append(append(b, p.file().plain...), ": "...)
	}
	b = eventPlace(b, e)
	switch t := e.Last.Time; {
	case !known(t):
		b = append(b, " -"...)
	case p.Absolute:
		b = p.date(append(b, ' '), t)
	default:
		b = p.since(append(b, ' '), t)
	}
	return eventEnds(b, e, " ", " > ")
}

// eventPlace appends the record, or the first and the last one, aligned.
func eventPlace(b []byte, e *iwarp.Event) []byte {
	const width = 6
	at := len(b)
	if b = number(b, "", e.First.Record); e.Last.Record != e.First.Record {
		b = number(b, "-", e.Last.Record)
	}
	if short := width - (len(b) - at); short > 0 {
		b = append(b, "      "[:short]...)
	}
	return b
}

func eventEnds(b []byte, e *iwarp.Event, before, between string) []byte {
	ends := &e.Conn.TCP.Ends
	b = ends[e.Way].AppendTo(append(b, before...))
	return ends[1-e.Way].AppendTo(append(b, between...))
}

// MatchEvent reports whether an event of iWARP is chosen; the usual end of a connection never is. An event fits no list of what frames of DG/RDMA have and it has not. What is no
// frame fits lists of ends alone.
func (f *Filter) MatchEvent(e *iwarp.Event) bool {
	if !f.MatchConnection(e.Conn.TCP) || e.Kind == iwarp.Gone && e.Why == "" {
		return false
	}
	if !f.OfIWARP() {
		return true
	}
	if e.Kind != iwarp.Frame || len(f.XIDs) > 0 || e.NoHeader || e.Fault != nil && e.Payload == nil {
		return false
	}
	return (len(f.Operations) == 0 || slices.ContainsFunc(f.Operations, func(o Operation) bool { return o.is(e) })) && (len(f.STags) == 0 || f.stag(e))
}

// MatchConnection reports whether a connection of iWARP is chosen, by its ends.
func (f *Filter) MatchConnection(c *tcp.Connection) bool {
	if f.OfDGRDMA() {
		return false
	}
	return f.MatchEnds(capture.Addr{UDP: c.Ends[0]}, capture.Addr{UDP: c.Ends[1]})
}

// is reports whether a frame is of a message of that kind.
func (o Operation) is(e *iwarp.Event) bool {
	switch {
	case o.RPC, o.Opcode != e.Opcode:
		return false
	case o.Atomic == "":
		return true
	case e.Answers != nil:
		return o.Atomic == e.Answers.Atomic
	}
	return e.Opcode == rdmap.AtomicRequest && e.HasOperands && o.Atomic == e.Operands.Atomic.Operation()
}

// stag reports whether a frame names one of the STags, in its header or as an operand.
func (f *Filter) stag(e *iwarp.Event) bool {
	named := func(s uint32) bool { return slices.Contains(f.STags, s) }
	o := &e.Operands
	switch {
	case e.Header.Tagged:
		return named(e.Header.STag)
	case invalidates(e):
		return named(e.Header.Invalidate)
	case e.Terminate != nil && e.Terminate.HasHeader && e.Terminate.Header.Tagged:
		return named(e.Terminate.Header.STag)
	case !e.HasOperands:
		return false
	}
	for _, s := range []uint32{o.Read.SinkSTag, o.Read.SourceSTag, o.Atomic.STag, o.Range.STag} {
		if s != 0 && named(s) {
			return true
		}
	}
	return false
}
