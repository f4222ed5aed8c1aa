package text

import (
	"strconv"

	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// eventStart is what an object begins with: where, when, and which side sent it.
func (p *Printer) eventStart(b []byte, e *iwarp.Event) []byte {
	b = append(b, '{')
	if p.File != "" {
		b = append(append(append(b, `"file":`...), p.file().quoted...), ',')
	}
	b = number(b, `"record":`, e.Last.Record)
	b = number(b, `,"first_record":`, e.First.Record)
	if known(e.Last.Time) {
		b = append(p.date(append(b, `,"time":"`...), e.Last.Time), '"')
		b = p.since(append(b, `,"seconds":`...), e.Last.Time)
	}
	b = number(b, `,"wire":"tcp","connection":`, e.Conn.Number)
	return append(eventEnds(b, e, `,"from":"`, `","to":"`), '"')
}

func (p *Printer) eventJSON(b []byte, e *iwarp.Event) []byte {
	b = p.eventStart(b, e)
	b = append(append(append(b, `,"kind":"`...), e.Kind.String()...), '"')
	switch e.Kind {
	case iwarp.SetUp:
		b = setUpJSON(b, &e.SetUp)
	case iwarp.Frame:
		b = p.frameJSON(b, e)
	default:
		b = number(b, `,"bytes":`, e.N)
		if e.Why != "" {
			b = jsonName(append(b, `,"why":`...), e.Why)
		}
	}
	if e.Wrong != nil {
		b = jsonName(append(b, `,"wrong":`...), e.Wrong.Error())
	}
	if p.behind && e.Late != "" {
		b = jsonName(append(b, `,"late":`...), e.Late)
	}
	return append(b, "}\n"...)
}

func setUpJSON(b []byte, s *mpa.SetUp) []byte {
	b = boolean(b, `,"reply":`, s.Reply)
	b = number(b, `,"revision":`, int(s.Rev))
	b = boolean(b, `,"wants_crc":`, s.CRC)
	b = boolean(b, `,"markers":`, s.Markers)
	b = boolean(b, `,"reject":`, s.Reject)
	b = number(b, `,"reserved":`, int(s.Reserved))
	if s.Enhanced {
		b = number(b, `,"ird":`, int(s.IRD))
		b = number(b, `,"ord":`, int(s.ORD))
		b = boolean(b, `,"peer_to_peer":`, s.PeerToPeer)
		b = append(b, `,"ready":[`...)
		before := ""
		for _, r := range []mpa.Ready{mpa.ReadyWrite, mpa.ReadyRead, mpa.ReadySend} {
			if s.Ready&r != 0 {
				b = strconv.AppendQuote(append(b, before...), r.String())
				before = ","
			}
		}
		b = append(b, ']')
	}
	b = append(hexBytes(append(b, `,"private":"`...), s.Private), '"')
	if p := codec.ParsePrivate(s.Private); p.SendSize > 0 {
		b = number(number(b, `,"rpc_over_rdma":{"send_size":`, p.SendSize), `,"receive_size":`, p.ReceiveSize)
		b = append(boolean(b, `,"remote_invalidation":`, p.Invalidate), '}')
	}
	return b
}

func (p *Printer) frameJSON(b []byte, e *iwarp.Event) []byte {
	h := &e.Header
	b = number(b, `,"length":`, e.Length)
	b = append(append(append(b, `,"crc":"`...), e.CRC.String()...), '"')
	b = number(b, `,"absent":`, e.Absent)
	b = boolean(b, `,"cut_end":`, e.CutEnd)
	if e.Segments > 0 {
		b = append(append(append(b, `,"operation":"`...), e.Opcode.String()...), '"')
		b = number(b, `,"opcode":`, int(e.Opcode))
		b = boolean(b, `,"fits":`, e.Fits)
		b = boolean(b, `,"tagged":`, h.Tagged)
		b = boolean(b, `,"last":`, h.Last)
		if h.Tagged {
			b = placeJSON(b, "stag", "to", h.STag, h.TO)
		} else {
			b = number(b, `,"qn":`, int(h.QN))
			b = number(b, `,"msn":`, int(h.MSN))
			b = number(b, `,"mo":`, int(h.MO))
		}
		if invalidates(e) {
			b = number(b, `,"invalidate":`, int(h.Invalidate))
		}
		b = number(b, `,"segment":`, e.Segments)
		b = strconv.AppendUint(append(b, `,"message_length":`...), e.Message, 10)
		b = boolean(b, `,"started":`, e.Started)
		b = operandJSON(b, e)
	}
	if t := e.Terminate; t != nil {
		b = terminateJSON(b, t)
	}
	if r := e.Answers; r != nil {
		b = number(b, `,"answers":{"record":`, r.At.Record)
		b = number(b, `,"msn":`, int(r.MSN))
		if known(e.Last.Time) && known(r.At.Time) {
			b = strconv.AppendInt(append(b, `,"after_ns":`...), int64(e.Last.Time.Sub(r.At.Time)), 10)
		}
		b = append(b, '}')
	}
	if all := problems(e); len(all) > 0 {
		b = append(b, `,"problems":[`...)
		for i, s := range all {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsonName(b, s)
		}
		b = append(b, ']')
	}
	if p.Bytes {
		b = append(hexBytes(append(b, `,"data":"`...), e.Payload), '"')
	}
	return b
}

// placeJSON writes a place in a tagged buffer. What has 64 bits is a string: programs that take numbers for floating ones lose some.
func placeJSON(b []byte, stag, to string, s uint32, t uint64) []byte {
	b = number(append(append(b, `,"`...), stag...), `":`, int(s))
	return quad(b, to, t)
}

func quad(b []byte, name string, n uint64) []byte {
	return append(hex64(append(append(b, `,"`...), name...), `":"`, n), '"')
}

func operandJSON(b []byte, e *iwarp.Event) []byte {
	o := &e.Operands
	if !e.HasOperands {
		return b
	}
	switch e.Opcode {
	case rdmap.ReadRequest:
		b = number(b, `,"read":{"size":`, int(o.Read.Size))
		b = placeJSON(b, "source_stag", "source_to", o.Read.SourceSTag, o.Read.SourceTO)
		b = append(placeJSON(b, "sink_stag", "sink_to", o.Read.SinkSTag, o.Read.SinkTO), '}')
	case rdmap.AtomicRequest:
		a := &o.Atomic
		b = strconv.AppendQuote(append(b, `,"atomic":{"operation":`...), a.Operation())
		b = placeJSON(number(b, `,"request":`, int(a.ID)), "stag", "to", a.STag, a.TO)
		b = quad(quad(b, "operand", a.Operand), "mask", a.Mask)
		b = append(quad(quad(b, "compare", a.Compare), "compare_mask", a.CompareMask), '}')
	case rdmap.AtomicResponse:
		b = append(quad(number(b, `,"atomic_answer":{"request":`, int(o.AtomicReply.ID)), "old", o.AtomicReply.Old), '}')
	case rdmap.Immediate, rdmap.ImmediateSE:
		b = append(hexBytes(append(b, `,"immediate":"`...), o.Word[:]), '"')
	case rdmap.FlushRequest, rdmap.VerifyRequest, rdmap.AtomicWriteRequest:
		b = number(b, `,"range":{"length":`, int(o.Range.Length))
		b = append(placeJSON(b, "stag", "to", o.Range.STag, o.Range.TO), '}')
	}
	switch e.Opcode {
	case rdmap.FlushRequest:
		b = boolean(boolean(b, `,"persistent":`, o.Persistent), `,"global":`, o.Global)
	case rdmap.VerifyRequest, rdmap.VerifyResponse:
		b = append(hexBytes(append(b, `,"hash":"`...), o.Hash), '"')
	case rdmap.AtomicWriteRequest:
		b = append(hexBytes(append(b, `,"word":"`...), o.Word[:]), '"')
	}
	return b
}

func terminateJSON(b []byte, t *rdmap.TerminateError) []byte {
	b = number(b, `,"terminate":{"layer":`, int(t.Fault.Layer()))
	b = number(b, `,"type":`, int(t.Fault.Type()))
	b = number(b, `,"code":`, int(t.Fault.Code()))
	b = jsonName(append(b, `,"words":`...), t.Fault.Error())
	b = boolean(b, `,"siw_bit_order":`, t.Swapped)
	if h := &t.Header; t.HasHeader {
		op, _ := rdmap.OpcodeOf(h)
		b = strconv.AppendQuote(append(b, `,"operation":`...), op.String())
		b = number(b, `,"segment_length":`, int(t.Segment))
		if h.Tagged {
			b = placeJSON(b, "stag", "to", h.STag, h.TO)
		} else {
			b = number(number(number(b, `,"qn":`, int(h.QN)), `,"msn":`, int(h.MSN)), `,"mo":`, int(h.MO))
		}
	}
	return append(b, '}')
}
