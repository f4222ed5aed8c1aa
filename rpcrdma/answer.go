package rpcrdma

import (
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// answering is what an Incoming knows of its Reply.
type answering struct {
	answer  Answer
	special bool // the message goes into the Reply chunk

	chunk   int // the Write chunk that is being written, then the Reply chunk
	cursor  segmentCursor
	payload payloadCursor
	left    int // octets of the payload that are not sent or written
}

// Reply answers an Incoming, after ActPlace or ActDeliver.
func (m *Machine) Reply(now time.Time, in *Incoming, a Answer) {
	if in.state != inPlacing && in.state != inWork {
		return
	}
	in.state = inAnswering
	in.answering = answering{answer: a}
	if in.Gone {
		m.rsp.finish(m, in)
		return
	}
	if report := m.rsp.plan(m, in); report.Code != 0 {
		m.rsp.fail(m, in, report)
		return
	}
	m.sendReply(in)
}

// Fail answers an Incoming by an ERROR in place of a Reply. In version 1 there is one code for all reports.
func (m *Machine) Fail(now time.Time, in *Incoming, r Report) {
	if in.state != inPlacing && in.state != inWork {
		return
	}
	if in.Gone {
		m.rsp.release(m, in)
		return
	}
	m.rsp.fail(m, in, r)
}

// fail has an ERROR follow in place of a Reply.
func (r *responder) fail(m *Machine, in *Incoming, report Report) {
	if m.version == Version1 {
		report = Report{Code: CodeChunk}
	} else if _, known := reportShapes[Version2][report.Code]; !known {
		report = Report{Code: CodeSystem}
	}
	m.sendError(m.version, in.XID, report)
	r.forget(in)
	r.finish(m, in)
}

// finish gives an answer back to the program.
func (r *responder) finish(m *Machine, in *Incoming) {
	m.actions.add(Action{Kind: ActAnswered, Done: in.answer.Done})
	r.release(m, in)
}

// forget removes an Incoming from those that count against what the peer was granted.
func (r *responder) forget(in *Incoming) {
	r.calls = slices.DeleteFunc(r.calls, func(c *Incoming) bool { return c == in })
}

// placed reports whether an item of the answer goes into a Write chunk. Chunks belong to items in order (RPC1-031), and
// an empty one holds the place of an item that is not reduced (RPC2-040).
func (in *Incoming) placed(i int) bool { return i < len(in.writes) && len(in.writes[i]) > 0 }

// plan decides how the Reply goes, and sets the lengths that it returns. The report says why it cannot go.
func (r *responder) plan(m *Machine, in *Incoming) Report {
	items := in.answer.Items
	length := len(in.answer.Head)
	for i := range items {
		if !in.placed(i) {
			length += xdr.Padded(len(items[i].Data))
		}
	}
	for i, w := range in.writes {
		n := 0
		if i < len(items) && in.placed(i) {
			n = len(items[i].Data)
		}
		if uint64(n) > w.Length() {
			return Report{Code: CodeWriteResource, Index: uint32(i + 1), Needed: uint32(n)}
		}
		w.fill(n)
	}
	in.left = length
	h := in.replyHeader(TypeMsg)
	switch {
	case h.Size()+length <= m.threshold():
	case uint64(length) <= in.reply.Length():
		in.special = true
		in.reply.fill(length)
	case m.version == Version2: // in parts (RPC2-051)
	default:
		return Report{Code: CodeReplyResource, Needed: uint32(length)}
	}
	return Report{}
}

// fill sets the lengths of segments to what n octets take of them, in order (RPC2-039).
func (c Chunk) fill(n int) {
	for i := range c {
		c[i].Length = uint32(min(uint64(c[i].Length), uint64(n)))
		n -= int(c[i].Length)
	}
}

// replyHeader returns the header of the Reply, or of the last part of it. A Reply chunk that is not used is left out
// (RPC1-030).
func (in *Incoming) replyHeader(t Type) Header {
	h := Header{XID: in.XID, Version: in.Version, Type: t, Writes: in.writes}
	if in.Version == Version2 {
		h.Flags = FlagResponse
	}
	if t == TypeNoMsg {
		h.HasReply, h.Reply = true, in.reply
	}
	return h
}

// next posts the next work of an answer: its Writes, then its Sends (RPC2-042).
func (r *responder) next(m *Machine, room int, in *Incoming, a *Action) (posted, done bool) {
	if to, data, ok := in.nextWrite(); ok {
		in.writing++
		m.post(a, room, OpWrite, data, false, work{in: in})
		a.To = to
		return true, false
	}
	t, n, k := TypeMsg, in.left, kindReply
	if in.special {
		t, n = TypeNoMsg, 0
	}
	h := in.replyHeader(t)
	if limit := m.threshold(); h.Size()+n > limit {
		h.Flags |= FlagMore
		h.Writes = nil
		n = min(n, limit-h.Size())
		k = kindPart
	}
	if !m.credits.maySend(k) {
		return false, false
	}
	slot := m.get(h.Size() + n)
	if slot == nil {
		return false, false
	}
	h.Credit = m.credits.sent(k)
	b := h.Append(slot.B[:0])
	for rest := n; rest > 0; {
		piece := in.payload.next(in, rest)
		b = append(b, piece...)
		rest -= len(piece)
	}
	in.left -= n
	if k == kindPart {
		m.post(a, room, OpSend, b, false, work{slot: slot})
		return true, false
	}
	// The Writes before it are complete with it: they refer to the program's memory.
	m.post(a, room, OpSend, b, in.writing > 0 && in.answer.Done != nil, work{slot: slot})
	a.Invalidate = in.invalid
	in.conveyed = true
	r.forget(in)
	if in.writing == 0 {
		r.finish(m, in)
	} else {
		r.answered = append(r.answered, in)
	}
	return true, true
}

// nextWrite returns the next piece that is written into a chunk.
func (in *Incoming) nextWrite() (to Segment, data []byte, ok bool) {
	items := in.answer.Items
	for ; in.answering.chunk < len(in.writes); in.answering.chunk++ {
		i := in.answering.chunk
		if i < len(items) {
			rest := items[i].Data[in.answering.cursor.octets:]
			if to, ok = in.answering.cursor.next(in.writes[i], len(rest)); ok {
				return to, rest[:to.Length], true
			}
		}
		in.answering.cursor = segmentCursor{}
	}
	if !in.special || in.left == 0 {
		return to, nil, false
	}
	data = in.payload.next(in, min(in.left, in.answering.cursor.rest(in.reply)))
	in.left -= len(data)
	to, ok = in.answering.cursor.next(in.reply, len(data))
	return to, data, ok
}

// payloadCursor is a place in the payload of a Reply: its Head, with the items in it that are not placed, each rounded up.
type payloadCursor struct {
	at     int // in Head
	item   int
	inside bool // the item
	within int  // octets of the item and its pad that are before the place
}

// pad is what items are rounded up by.
var pad [wordSize]byte

// next returns at most limit octets in a row, and moves behind them. There must be some.
func (p *payloadCursor) next(in *Incoming, limit int) []byte {
	head, items := in.answer.Head, in.answer.Items
	for {
		if p.inside {
			data := items[p.item].Data
			padded := xdr.Padded(len(data))
			at := p.within
			switch {
			case at < len(data):
				p.within = min(at+limit, len(data))
				return data[at:p.within]
			case at < padded:
				p.within = min(at+limit, padded)
				return pad[:p.within-at]
			}
			p.inside = false
			p.item++
		}
		for p.item < len(items) && in.placed(p.item) {
			p.item++
		}
		end := len(head)
		if p.item < len(items) {
			end = items[p.item].At
		}
		if p.at < end {
			at := p.at
			p.at = min(at+limit, end)
			return head[at:p.at]
		}
		p.inside, p.within = true, 0
	}
}
