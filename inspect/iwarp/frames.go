package iwarp

import (
	"encoding/binary"
	"fmt"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// message is one that may not be complete.
type message struct {
	begun, started bool
	segments       int
	n              uint64
	first          ddp.Header
}

// frame reads the frame that what waits begins with, if it is whole.
func (d *Decoder) frame(c *Connection, w tcp.Way) bool {
	v := &c.ways[w]
	if len(v.buf) < mpa.LengthSize {
		return false
	}
	size := frameSize(v.buf)
	if len(v.buf) < size {
		return false
	}
	b := v.buf[:size]
	crc := d.checksum(v, b)
	if v.absent > 0 || plausible(b) || crc == Good {
		v.doubts = 0
	} else if v.doubts++; crc != Off || v.doubts > 1 {
		e := d.begin(Lost, c, w, v.ref(v.pos), v.ref(v.pos))
		e.Why = fmt.Sprintf("what should be a frame, %d bytes long by its first two, has no header that makes sense", size)
		d.say(e)
		d.lose(c, w)
		return true
	}
	d.tellFrame(c, w, b, crc)
	v.consume(size)
	v.absent, v.noHeader = 0, false
	return true
}

// checksum says what is known of the CRC of a whole frame. Where it is not known whether there is one, the first
// that is right tells.
func (d *Decoder) checksum(v *way, frame []byte) CRC {
	switch {
	case v.absent > 0:
		return Unchecked
	case v.crc == Off:
		return Off
	case mpa.Intact(frame):
		v.crc = Good
		return Good
	case v.crc == Good:
		return Bad
	}
	return Unchecked
}

// tellFrame makes an event of a frame.
func (d *Decoder) tellFrame(c *Connection, w tcp.Way, b []byte, crc CRC) {
	v := &c.ways[w]
	n := int(binary.BigEndian.Uint16(b))
	end := v.pos + int64(len(b))
	e := d.begin(Frame, c, w, v.ref(v.pos), v.ref(end-1))
	e.CRC, e.Absent, e.NoHeader = crc, v.absent, v.noHeader
	trailer := end - int64(mpa.TrailerSize(n))
	for _, m := range v.marks {
		if m.pos >= end {
			break // those that follow are of what waits: looking at all for each frame takes quadratic time
		}
		e.CutEnd = e.CutEnd || v.absent == 0 && m.pos > trailer
	}
	segment := b[mpa.LengthSize : mpa.LengthSize+n]
	h := &e.Header
	wrong := ddp.Parse(segment, h)
	switch {
	case v.noHeader:
		e.Length = n
		d.blind(c, w)
	case wrong != nil:
		e.Fault, e.Length, e.Payload = wrong, n, segment
	default:
		e.Payload = segment[h.Size():]
		e.Length = len(e.Payload)
		e.Leading = e.Length
		if v.absent > 0 {
			e.Leading = min(max(v.there-mpa.LengthSize-h.Size(), 0), e.Length)
		}
		e.Opcode, e.Fits = rdmap.OpcodeOf(h)
		v.follow(e)
		d.meaning(c, w, e)
	}
	c.frames[w]++
	d.say(e)
}

// follow puts a segment with the message that it is of.
func (v *way) follow(e *Event) {
	h := &e.Header
	m := &v.untagged
	if h.Tagged {
		m = &v.tagged
	}
	abort := !h.Tagged && h.QN == ddp.AbortQueue
	wrong := v.in.Follows(h, e.Length)
	if wrong != nil {
		if !v.blind {
			e.Fault = wrong
		}
		v.in = ddp.Inbound{}
	}
	v.in.Placed(h, e.Length)
	if wrong != nil || abort || !m.begun {
		*m = message{begun: true, started: h.MO == 0 && (!h.Tagged || !v.blind), first: *h}
	}
	m.segments++
	m.n += uint64(e.Length)
	e.Segments, e.Message, e.Started = m.segments, m.n, m.started
	if h.Last {
		m.begun, v.blind = false, false
	}
	if h.Tagged || h.MO != 0 || h.QN >= uint32(len(v.msn)) {
		return
	}
	if want := v.msn[h.QN]; want != 0 && want != h.MSN {
		e.WantMSN = want
	}
	v.msn[h.QN] = h.MSN + 1
}

// meaning reads what a message says to the machine at the other side.
func (d *Decoder) meaning(c *Connection, w tcp.Way, e *Event) {
	h, op := &e.Header, e.Opcode
	if !e.Fits {
		return
	}
	whole := e.Absent == 0 && h.Last && h.MO == 0 && !h.Tagged
	switch op {
	case rdmap.Write, rdmap.ReadResponse, rdmap.Send, rdmap.SendInvalidate, rdmap.SendSE, rdmap.SendSEInvalidate:
	case rdmap.Terminate:
		if whole {
			setUp := c.Known && w == c.Initiator && c.frames == [2]int{}
			e.Terminate = rdmap.ParseTerminate(e.Payload, setUp)
		}
	default:
		if whole {
			e.Wrong = e.Operands.Parse(op, e.Payload)
			e.HasOperands = e.Wrong == nil
		}
	}
	if _, asks := op.Answer(); asks && h.MO == 0 {
		d.asked(c, w, e)
	}
	if h.Last && (op == rdmap.ReadResponse || !h.Tagged && h.QN == queueAnswers) {
		d.answered(c, w, e)
	}
}

// queueAnswers is the queue of answers to all requests but Reads (RDMAPX-007).
const queueAnswers = 3

func (d *Decoder) asked(c *Connection, w tcp.Way, e *Event) {
	v, o := &c.ways[w], &c.ways[1-w]
	if v.requests.waiting >= MostRequests || o.state == dead {
		o.loose = true
		return
	}
	r := Request{Opcode: e.Opcode, MSN: e.Header.MSN, At: e.Last, Read: e.Operands.Read, ID: e.Operands.Atomic.ID, Whole: e.HasOperands}
	if r.Whole && r.Opcode == rdmap.AtomicRequest {
		r.Atomic = e.Operands.Atomic.Operation()
	}
	if named := r.Opcode == rdmap.ReadRequest || r.Opcode == rdmap.AtomicRequest; o.loose && !(named && r.Whole) {
		return // nothing tells its answer from that of another one, which was not captured
	}
	v.requests.add(r)
}

// answered finds the request that a message answers: the oldest of its kind. Where not all requests are known, it has to fit what
// is asked for, or else answers one that was not captured: nobody can say that it is wrong.
func (d *Decoder) answered(c *Connection, w tcp.Way, e *Event) {
	v, o := &c.ways[w], &c.ways[1-w]
	var r Request
	found := false
	k, tells := v.whatIn(e)
	switch {
	case v.loose && !e.Started:
		return
	case v.loose && tells:
		r, found = o.requests.fitting(e.Opcode, k)
	default:
		r, found = o.requests.oldest(e.Opcode)
	}
	switch {
	case !found && v.loose:
		return
	case !found:
		e.Odd = "answers nothing that was asked for"
		return
	}
	d.count(c, 1-w)
	if e.Answers = &r; tells && r.Whole && k != whatOf(&r) {
		e.Odd = v.oddity(e, &r)
	}
}

// oddity says how an answer does not fit a request.
func (v *way) oddity(e *Event, r *Request) string {
	switch first := &v.tagged.first; {
	case e.Opcode == rdmap.AtomicResponse:
		return fmt.Sprintf("names request %#x, and %#x is the one to be answered", e.Operands.AtomicReply.ID, r.ID)
	case first.STag != r.Read.SinkSTag || first.TO != r.Read.SinkTO:
		return fmt.Sprintf("goes to STag %#x TO %#x, and the Read named %#x TO %#x", first.STag, first.TO, r.Read.SinkSTag, r.Read.SinkTO)
	}
	return fmt.Sprintf("has %d bytes, and the Read asked for %d", e.Message, r.Read.Size)
}
