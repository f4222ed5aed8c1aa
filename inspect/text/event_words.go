package text

import (
	"strconv"

	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// eventWords says what happened.
func eventWords(b []byte, e *iwarp.Event) []byte {
	switch e.Kind {
	case iwarp.SetUp:
		return setUpWords(b, e)
	case iwarp.Frame:
		return frameWords(b, e)
	case iwarp.Begins:
		what := "the beginning of the connection is not in the capture"
		if e.Conn.TCP.Begun {
			what = "the set-up of the connection is not in the capture (snap length, or the capture lost packets)"
		}
		b = append(append(b, what...), "; found a frame by its CRC"...)
		return skipped(b, e.N)
	case iwarp.Missing:
		return append(number(b, "", e.N), " bytes are not in the capture"...)
	case iwarp.Found:
		return skipped(append(b, "found a frame again by its CRC"...), e.N)
	case iwarp.GivenUp:
		b = append(append(b, "this direction is given up: "...), e.Why...)
		return skipped(b, e.N)
	case iwarp.Lost:
		return append(append(b, "lost the frames: "...), e.Why...)
	case iwarp.Finished:
		return append(b, "closes the connection (FIN)"...)
	case iwarp.Reset:
		return append(b, "resets the connection (RST)"...)
	case iwarp.Incomplete:
		return append(number(b, "ends within a frame, of which there are ", e.N), " bytes"...)
	}
	b = append(b, "nothing follows of this connection"...)
	if e.Why != "" {
		b = append(append(b, ": "...), e.Why...)
	}
	return b
}

func skipped(b []byte, n int) []byte {
	if n > 0 {
		b = append(number(b, ", ", n), " bytes skipped"...)
	}
	return b
}

// linePrivate is how much of private data a line shows.
const linePrivate = 32

func setUpWords(b []byte, e *iwarp.Event) []byte {
	s := &e.SetUp
	what := "MPA request"
	if s.Reply {
		what = "MPA reply"
	}
	b = number(append(b, what...), " revision ", int(s.Rev))
	for _, f := range []struct {
		on    bool
		words string
	}{{s.Reject && s.Reply, ", rejected"}, {s.Reject && !s.Reply, ", reject bit"}, {s.CRC, ", CRC"}, {!s.CRC, ", no CRC"}, {s.Markers, ", markers"}} {
		if f.on {
			b = append(b, f.words...)
		}
	}
	if s.Enhanced {
		b = reads(append(b, ", IRD "...), s.IRD)
		b = reads(append(b, " ORD "...), s.ORD)
		if s.PeerToPeer {
			b = append(append(b, ", peer-to-peer, ready-to-receive frame "...), s.Ready.String()...)
		} else if s.Ready != 0 {
			b = append(append(append(b, ", ready-to-receive frame "...), s.Ready.String()...), " without peer-to-peer"...)
		}
	}
	if s.Reserved != 0 {
		b = hexadecimal(b, ", reserved bits ", uint32(s.Reserved))
	}
	if n := len(s.Private); n > 0 {
		b = number(b, ", private data ", n)
		b = append(b, " bytes "...)
		if shown := s.Private[:min(n, linePrivate)]; printable(shown) {
			b = strconv.AppendQuote(b, string(shown))
		} else {
			b = hexBytes(b, shown)
		}
		if n > linePrivate {
			b = append(b, "..."...)
		}
		b = privateWords(b, codec.ParsePrivate(s.Private))
	}
	if e.Absent > 0 {
		b = append(number(b, "; ", e.Absent), " bytes of it are not in the capture"...)
	}
	if e.Wrong != nil {
		b = append(append(b, "; wrong: "...), e.Wrong.Error()...)
	}
	return b
}

// privateWords says what private data of RPC-over-RDMA are (RFC 8797), if they are that.
func privateWords(b []byte, p codec.Private) []byte {
	if p.SendSize == 0 {
		return b
	}
	b = number(b, " (RPC-over-RDMA: Sends of up to ", p.SendSize)
	b = number(b, " bytes, receives of ", p.ReceiveSize)
	if p.Invalidate {
		return append(b, ", takes remote invalidation)"...)
	}
	return append(b, ", no remote invalidation)"...)
}

func reads(b []byte, n uint16) []byte {
	if n == mpa.NotNegotiated {
		return append(b, "not negotiated"...)
	}
	return strconv.AppendUint(b, uint64(n), 10)
}

// printable reports whether bytes are text, with at most a zero at the end.
func printable(b []byte) bool {
	for i, x := range b {
		if (x < ' ' || x > '~') && (x != 0 || i != len(b)-1 || i == 0) {
			return false
		}
	}
	return true
}

func frameWords(b []byte, e *iwarp.Event) []byte {
	h := &e.Header
	switch {
	case e.NoHeader:
		b = append(number(b, "frame with a segment of ", e.Length), " bytes, without its header"...)
	case e.Fault != nil && e.Segments == 0:
		b = append(number(b, "frame with a segment of ", e.Length), " bytes"...)
	default:
		b = append(b, opcodeWords(e)...)
		if !e.Fits {
			b = hexadecimal(b, " (control octet ", uint32(h.Control))
			b = append(b, ", which does not fit the rest)"...)
		}
		if h.Tagged {
			b = place64(b, " ", h.STag, h.TO)
		} else {
			b = number(b, " QN ", int(h.QN))
			b = number(b, " MSN ", int(h.MSN))
			b = number(b, " MO ", int(h.MO))
		}
		b = append(number(b, " ", e.Length), " bytes"...)
		b = segmentWords(b, e)
		b = operandWords(b, e)
	}
	b = append(append(b, ", CRC "...), e.CRC.String()...)
	if r := e.Answers; r != nil {
		b = number(b, ", answers record ", r.At.Record)
		if known(e.Last.Time) && known(r.At.Time) {
			b = append(append(b, " after "...), e.Last.Time.Sub(r.At.Time).String()...)
		}
	}
	for _, w := range problems(e) {
		b = append(append(b, "; "...), w...)
	}
	return b
}

// problems says what is wrong with a frame, or missing.
func problems(e *iwarp.Event) (all []string) {
	if e.Absent > 0 {
		all = append(all, strconv.Itoa(e.Absent)+" bytes of it are not in the capture")
	}
	if e.Fault != nil {
		all = append(all, "wrong: "+e.Fault.Error())
	}
	if e.Wrong != nil {
		all = append(all, "wrong operands: "+e.Wrong.Error())
	}
	if e.WantMSN != 0 {
		all = append(all, "wrong: MSN "+strconv.FormatUint(uint64(e.WantMSN), 10)+" would be next")
	}
	if e.Odd != "" {
		all = append(all, "wrong: "+e.Odd)
	}
	return all
}

// opcodeWords names the operation, and of an Atomic Request which one it is.
func opcodeWords(e *iwarp.Event) string {
	if e.Opcode == rdmap.AtomicRequest && e.HasOperands {
		return e.Operands.Atomic.Operation()
	}
	return e.Opcode.String()
}

func segmentWords(b []byte, e *iwarp.Event) []byte {
	switch {
	case !e.Started && e.Header.Last:
		return append(b, ", last segment"...)
	case !e.Started:
		return append(b, ", a segment"...)
	case e.Header.Last && e.Segments == 1:
		return append(b, ", whole"...)
	case e.Header.Last:
		b = number(b, ", last of ", e.Segments)
		b = strconv.AppendUint(append(b, " segments, "...), e.Message, 10)
		return append(b, " bytes in all"...)
	case e.Segments == 1:
		return append(b, ", first segment"...)
	}
	return number(b, ", segment ", e.Segments)
}

func invalidates(e *iwarp.Event) bool {
	return e.Fits && (e.Opcode == rdmap.SendInvalidate || e.Opcode == rdmap.SendSEInvalidate)
}

func operandWords(b []byte, e *iwarp.Event) []byte {
	o := &e.Operands
	switch {
	case invalidates(e):
		return hexadecimal(b, ", invalidates STag ", e.Header.Invalidate)
	case e.Terminate != nil:
		return terminateWords(append(b, ": "...), e.Terminate)
	case !e.HasOperands:
		return b
	}
	switch e.Opcode {
	case rdmap.ReadRequest:
		b = append(number(b, ": ", int(o.Read.Size)), " bytes"...)
		b = place64(b, " from ", o.Read.SourceSTag, o.Read.SourceTO)
		b = place64(b, " to ", o.Read.SinkSTag, o.Read.SinkTO)
	case rdmap.AtomicRequest:
		a := &o.Atomic
		b = place64(b, ": at ", a.STag, a.TO)
		if a.Op == 0 {
			b = hex64(b, " add ", a.Operand)
			b = hex64(b, " mask ", a.Mask)
		} else {
			b = hex64(b, " compare ", a.Compare)
			b = hex64(b, " mask ", a.CompareMask)
			b = hex64(b, " swap ", a.Operand)
			b = hex64(b, " mask ", a.Mask)
		}
		b = hexadecimal(b, " request ", a.ID)
	case rdmap.AtomicResponse:
		b = hex64(b, ": was ", o.AtomicReply.Old)
		b = hexadecimal(b, " request ", o.AtomicReply.ID)
	case rdmap.Immediate, rdmap.ImmediateSE:
		b = hexBytes(append(b, ": "...), o.Word[:])
	case rdmap.FlushRequest:
		b = rangeWords(b, &o.Range)
		if o.Persistent {
			b = append(b, " persistent"...)
		}
		if o.Global {
			b = append(b, " global"...)
		}
	case rdmap.VerifyRequest:
		b = rangeWords(b, &o.Range)
		if len(o.Hash) > 0 {
			b = hexBytes(append(b, " hash "...), o.Hash)
		}
	case rdmap.VerifyResponse:
		b = hexBytes(append(b, ": hash "...), o.Hash)
	case rdmap.AtomicWriteRequest:
		b = hexBytes(append(b, ": "...), o.Word[:])
		b = place64(b, " to ", o.Range.STag, o.Range.TO)
	}
	return b
}

func rangeWords(b []byte, r *rdmap.RangeHeader) []byte {
	b = append(number(b, ": ", int(r.Length)), " bytes"...)
	return place64(b, " at ", r.STag, r.TO)
}

func terminateWords(b []byte, t *rdmap.TerminateError) []byte {
	b = append(b, t.Fault.Error()...)
	if h := &t.Header; t.HasHeader {
		op, _ := rdmap.OpcodeOf(h)
		b = append(append(b, ", for "...), op.One()...)
		if h.Tagged {
			b = place64(b, " ", h.STag, h.TO)
		} else {
			b = number(b, " QN ", int(h.QN))
			b = number(b, " MSN ", int(h.MSN))
			b = number(b, " MO ", int(h.MO))
		}
		b = append(number(b, " of ", int(t.Segment)), " bytes"...)
	}
	if t.Swapped {
		b = append(b, ", in siw's bit order"...)
	}
	return b
}

// place64 appends a place in a tagged buffer.
func place64(b []byte, before string, stag uint32, to uint64) []byte {
	b = hexadecimal(append(b, before...), "STag ", stag)
	return hex64(b, " TO ", to)
}

func hex64(b []byte, before string, n uint64) []byte {
	return strconv.AppendUint(append(append(b, before...), "0x"...), n, 16)
}
