package text

import (
	"slices"
	"strconv"

	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// AppendRPC appends the text for a message of RPC-over-RDMA, and a newline. It stands after the frame that completes the message.
func (p *Printer) AppendRPC(b []byte, m *rpcrdma.Message) []byte {
	e := iwarp.Event{Conn: m.Conn.IWARP, Way: m.Way, First: m.First, Last: m.Last}
	if p.Style == JSON {
		b = rpcJSON(append(p.eventStart(b, &e), `,"kind":"rpc"`...), m)
		if p.Bytes {
			b = octetsJSON(b, m)
		}
		return append(b, "}\n"...)
	}
	b = append(rpcWords(append(p.lineStart(b, &e), ' '), m), '\n')
	if p.Style == Fields && m.Fault == nil && m.Kind != rpcrdma.Unread {
		b = rpcFields(b, m)
	}
	if p.Style == Fields && p.Bytes {
		b = octetDumps(b, m)
	}
	return b
}

// MatchRPC reports whether a message of RPC-over-RDMA is chosen, of which e is the last frame: a list of operations by that or
// by the operation that is such messages, and a list of STags by those that it names, too. Only a message whose header is known fits a list of XIDs.
func (f *Filter) MatchRPC(m *rpcrdma.Message, e *iwarp.Event) bool {
	if !f.MatchConnection(e.Conn.TCP) {
		return false
	}
	return (len(f.Operations) == 0 || f.OfRPC() || slices.ContainsFunc(f.Operations, func(o Operation) bool { return o.is(e) })) &&
		(len(f.STags) == 0 || f.stag(e) || f.names(m)) && (len(f.XIDs) == 0 || m.Fault == nil && m.Kind != rpcrdma.Unread && slices.Contains(f.XIDs, m.Header.XID))
}

// OfRPC reports whether messages of RPC-over-RDMA are among the operations that f chooses.
func (f *Filter) OfRPC() bool {
	return slices.ContainsFunc(f.Operations, func(o Operation) bool { return o.RPC })
}

// names reports whether a chunk of a message has one of the STags.
func (f *Filter) names(m *rpcrdma.Message) bool {
	of := func(c codec.Chunk) bool {
		return slices.ContainsFunc(c, func(s codec.Segment) bool { return slices.Contains(f.STags, s.Handle) })
	}
	h := m.Header
	return slices.ContainsFunc(h.Reads, func(r codec.ReadChunk) bool { return of(r.Segments) }) || slices.ContainsFunc(h.Writes, of) || of(h.Reply)
}

// rpcWords says what a message is.
func rpcWords(b []byte, m *rpcrdma.Message) []byte {
	h := m.Header
	if m.Fault != nil || m.Kind == rpcrdma.Unread {
		b = strconv.AppendUint(append(b, "RPC-over-RDMA: a message of "...), m.Length, 10)
		b = append(b, " bytes"...)
		if m.Fault == nil {
			return append(b, ", which is not whole in the capture"...)
		}
		return append(append(b, "; malformed: "...), m.Fault.Error()...)
	}
	b = number(b, "RPC-over-RDMA ", int(h.Version))
	if m.Reverse {
		b = append(b, " reverse"...)
	}
	b = append(append(b, ' '), m.Kind.String()...)
	b = hexadecimal(b, " XID ", h.XID)
	if m.Call != nil {
		b = append(append(b, ' '), m.Call.Name()...)
	}
	b = creditWords(append(append(b, ", "...), h.Type.String()...), m)
	if h.InvHandle != 0 {
		b = hexadecimal(b, ", may invalidate STag ", h.InvHandle)
	}
	for i := range h.Reads {
		r := &h.Reads[i]
		b = chunkWords(number(b, ", Read chunk at Position ", int(r.Position)), r.Segments)
	}
	for _, w := range h.Writes {
		b = chunkWords(append(b, ", Write chunk"...), w)
	}
	if h.HasReply {
		b = chunkWords(append(b, ", Reply chunk"...), h.Reply)
	}
	switch {
	case h.Type == codec.TypeMsg:
		b = append(strconv.AppendUint(append(b, ", "...), m.Payload, 10), " bytes inline"...)
	case m.Kind == rpcrdma.Error:
		b = reportWords(append(b, ": "...), h)
	case m.Kind == rpcrdma.Properties:
		b = propertyWords(b, h.Properties)
	}
	if c := m.Call; c != nil && m.Kind != rpcrdma.CallKind {
		b = answerWords(b, m)
	}
	if m.Wrong != "" {
		b = append(append(b, "; wrong: "...), m.Wrong...)
	}
	return b
}

func creditWords(b []byte, m *rpcrdma.Message) []byte {
	h := m.Header
	if h.Version == codec.Version2 {
		b = number(b, ", ", int(h.Maximum()))
		return append(number(b, " credits granted, ", int(h.Granted())), " of them new"...)
	}
	b = append(strconv.AppendUint(append(b, ", "...), uint64(h.Credit), 10), " credits "...)
	if m.Kind == rpcrdma.CallKind {
		return append(b, "asked"...)
	}
	return append(b, "granted"...)
}

func chunkWords(b []byte, c codec.Chunk) []byte {
	if len(c) == 0 {
		return append(b, " without segments"...)
	}
	for i := range c {
		before := " + "
		if i == 0 {
			before = " of "
		}
		b = number(b, before, int(c[i].Length))
		b = place64(append(b, " bytes"...), " at ", c[i].Handle, c[i].Offset)
	}
	return b
}

func reportWords(b []byte, h *codec.Header) []byte {
	r := &h.Report
	b = append(b, r.Code.Name(h.Version)...)
	switch {
	case r.Code == codec.CodeVers:
		b = number(b, " of version ", int(r.Refused))
		b = number(b, ", known are ", int(r.Low))
		return number(b, " to ", int(r.High))
	case r.Max > 0:
		return number(b, ", at most ", int(r.Max))
	case r.Needed > 0:
		b = number(b, ", ", int(r.Needed))
		return append(b, " bytes are needed"...)
	}
	return b
}

// answerWords says what is answered, and how.
func answerWords(b []byte, m *rpcrdma.Message) []byte {
	c := m.Call
	b = hexadecimal(b, "; answers XID ", m.Header.XID)
	b = number(b, " in record ", c.At.Record)
	if known(m.Last.Time) && known(c.At.Time) {
		b = append(append(b, " after "...), m.Last.Time.Sub(c.At.Time).String()...)
	}
	if m.Kind == rpcrdma.ReplyKind {
		b = append(append(b, ": "...), m.Status.String()...)
	}
	if c.Placed > 0 {
		b = append(strconv.AppendUint(append(b, ", "...), c.Placed, 10), " bytes by RDMA Write"...)
	}
	if c.Fetched > 0 {
		b = append(strconv.AppendUint(append(b, ", "...), c.Fetched, 10), " bytes by RDMA Read"...)
	}
	return b
}

func rpcJSON(b []byte, m *rpcrdma.Message) []byte {
	h := m.Header
	b = jsonName(append(b, `,"message":`...), m.Kind.String())
	b = strconv.AppendUint(append(b, `,"length":`...), m.Length, 10)
	if m.Fault != nil {
		return jsonName(append(b, `,"malformed":`...), m.Fault.Error())
	}
	if m.Kind == rpcrdma.Unread {
		return b
	}
	b = boolean(b, `,"reverse":`, m.Reverse)
	b = number(b, `,"version":`, int(h.Version))
	b = strconv.AppendUint(append(b, `,"xid":`...), uint64(h.XID), 10)
	b = append(hexadecimal(b, `,"xid_hex":"`, h.XID), '"')
	b = jsonName(append(b, `,"type":`...), h.Type.String())
	if h.Version == codec.Version2 {
		b = number(number(b, `,"credits":`, int(h.Maximum())), `,"credits_new":`, int(h.Granted()))
		b = number(number(b, `,"flags":`, int(h.Flags)), `,"may_invalidate":`, int(h.InvHandle))
	} else {
		b = number(b, `,"credits":`, int(h.Credit))
	}
	if h.Type == codec.TypeMsg || h.Type == codec.TypeNoMsg {
		b = append(b, `,"reads":[`...)
		for i := range h.Reads {
			b = number(append(comma(b, i), '{'), `"position":`, int(h.Reads[i].Position))
			b = append(chunkJSON(append(b, `,"segments":`...), h.Reads[i].Segments), '}')
		}
		b = append(b, `],"writes":[`...)
		for i, w := range h.Writes {
			b = chunkJSON(comma(b, i), w)
		}
		b = append(b, ']')
		if h.HasReply {
			b = chunkJSON(append(b, `,"reply_chunk":`...), h.Reply)
		}
		b = strconv.AppendUint(append(b, `,"inline":`...), m.Payload, 10)
	}
	switch m.Kind {
	case rpcrdma.Error:
		b = jsonName(append(b, `,"error":`...), string(reportWords(nil, h)))
	case rpcrdma.Properties:
		b = propertyJSON(b, h.Properties)
	}
	if c := m.Call; c != nil {
		b = callJSON(b, m)
	}
	if m.Wrong != "" {
		b = jsonName(append(b, `,"wrong":`...), m.Wrong)
	}
	return b
}

func callJSON(b []byte, m *rpcrdma.Message) []byte {
	c := m.Call
	if c.Known {
		b = jsonName(append(b, `,"procedure":`...), c.Name())
		b = number(b, `,"rpc":{"program":`, int(c.Program))
		b = number(b, `,"version":`, int(c.ProgramVersion))
		b = number(b, `,"procedure":`, int(c.Procedure))
		if k := c.Compound; k != nil {
			b = append(number(b, `,"minor":`, int(k.Minor)), `,"operations":[`...)
			for i, name := range k.Operations {
				b = jsonName(comma(b, i), name)
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	b = detailJSON(b, "credential", m.Credential())
	b = detailJSON(b, "arguments", m.Arguments())
	if m.Kind == rpcrdma.CallKind {
		return b
	}
	b = number(b, `,"answers":{"record":`, c.At.Record)
	if known(m.Last.Time) && known(c.At.Time) {
		b = strconv.AppendInt(append(b, `,"after_ns":`...), int64(m.Last.Time.Sub(c.At.Time)), 10)
	}
	b = append(b, '}')
	if m.Kind == rpcrdma.ReplyKind {
		b = jsonName(append(b, `,"status":`...), m.Status.String())
		b = detailJSON(b, "results", m.Results())
	}
	b = strconv.AppendUint(append(b, `,"written":`...), c.Placed, 10)
	return strconv.AppendUint(append(b, `,"read":`...), c.Fetched, 10)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

func chunkJSON(b []byte, c codec.Chunk) []byte {
	b = append(b, '[')
	for i := range c {
		b = number(append(comma(b, i), '{'), `"length":`, int(c[i].Length))
		b = append(placeJSON(b, "stag", "to", c[i].Handle, c[i].Offset), '}')
	}
	return append(b, ']')
}
