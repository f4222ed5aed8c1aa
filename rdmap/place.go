package rdmap

import (
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Place is what a carrier asks for, see [ddp.Sink].
func (s *Stream) Place(h *ddp.Header, n int) (ddp.Span, error) {
	if s.state != open {
		return ddp.Span{}, s.cause
	}
	op, err := s.cfg.Extensions.opcode(h)
	if err != nil {
		return ddp.Span{}, s.refuse(err, h, n, nil)
	}
	var span ddp.Span
	switch {
	case op == Write:
		if n > 0 { // DDP-009: nothing is looked up for nothing
			span, err = s.cfg.Memory.Find(AccessWrite, h.STag, h.TO, uint32(n))
		}
	case op == ReadResponse:
		span, err = s.placeRead(h, n)
	case h.QN == queueSend:
		span, err = s.placeSend(op, h, n)
	case h.QN == queueRequest:
		span, err = s.placeRequest(op, h, n)
	case h.QN == queueTerminate:
		span, err = window(s.fromPeer[:], h.MO, n)
	default:
		span, err = s.placeAnswer(op, h, n)
	}
	if err != nil {
		return ddp.Span{}, s.refuse(err, h, n, nil)
	}
	return span, nil
}

// window returns n bytes of a buffer, from offset mo of the message.
func window(b []byte, mo uint32, n int) (ddp.Span, error) {
	if uint64(mo)+uint64(n) > uint64(len(b)) {
		return ddp.Span{}, ddp.UntaggedTooLong
	}
	return ddp.Span{Bytes: b[mo : int(mo)+n : int(mo)+n]}, nil
}

func (s *Stream) placeSend(op Opcode, h *ddp.Header, n int) (ddp.Span, error) {
	if s.readySend(op, h, n) {
		return ddp.Span{}, nil
	}
	b, err := s.buffer(h.MSN)
	if err != nil {
		return ddp.Span{}, err
	}
	if op == Immediate || op == ImmediateSE {
		return window(b.immediate[:], h.MO, n)
	}
	if len(b.More) == 0 {
		return window(b.Data, h.MO, n)
	}
	if uint64(h.MO)+uint64(n) > b.size {
		return ddp.Span{}, ddp.UntaggedTooLong
	}
	return ddp.Span{Bytes: b.pieces.find(b.Data, b.More, uint64(h.MO), n)}, nil
}

// readySend says that a message is the Send of nothing that opens the stream, and takes no
// buffer (MPA-016).
func (s *Stream) readySend(op Opcode, h *ddp.Header, n int) bool {
	return s.cfg.Ready == ReadySend && !s.cfg.Initiator && op == Send && h.MSN == 1 && h.Last && n == 0
}

func (s *Stream) placeRequest(op Opcode, h *ddp.Header, n int) (ddp.Span, error) {
	r := &s.responder
	i := h.MSN - 1
	if ahead := i - r.requests; ahead != 0 && (!s.cfg.Unordered || ahead >= uint32(max(r.ird, 1))) {
		return ddp.Span{}, ddp.UntaggedMSN
	}
	for !r.queue.has(i) {
		if int(r.queue.tail-r.begun) >= r.ird {
			return ddp.Span{}, ddp.OperationStream // RDMAP-081: more than were agreed on
		}
		q := r.queue.add()
		*q = request{}
	}
	q := r.queue.at(i)
	q.op = op
	span, err := window(q.words[:], h.MO, n)
	if err != nil {
		return span, ddp.OperationStream // RDMAP-097: no request is that long
	}
	return span, nil
}

// placeRead says where a segment of the answer to a Read goes: only where the Read asked for it (RDMAP-044).
func (s *Stream) placeRead(h *ddp.Header, n int) (ddp.Span, error) {
	r := &s.requester
	if r.waiting.len() == 0 {
		return ddp.Span{}, ddp.OperationOpcode
	}
	if s.cfg.Unordered {
		for i := r.waiting.head; i != r.waiting.tail; i++ {
			place := *r.waiting.at(i)
			if e := r.work.at(place); place != placeReady && e.Op == OpRead && !e.done && h.STag == sinkSTag && h.TO-e.sink <= uint64(e.length) {
				return e.sinkAt(h.TO, n)
			}
		}
	}
	place := *r.waiting.at(r.waiting.head)
	if place == placeReady {
		if h.STag != 0 {
			return ddp.Span{}, ddp.TaggedSTag
		}
		if h.TO != 0 || n != 0 {
			return ddp.Span{}, ddp.TaggedBounds
		}
		return ddp.Span{}, nil
	}
	e := r.work.at(place)
	switch {
	case e.Op != OpRead:
		return ddp.Span{}, ddp.OperationOpcode
	case h.STag != sinkSTag:
		return ddp.Span{}, ddp.TaggedSTag
	}
	return e.sinkAt(h.TO, n)
}

// sinkAt returns n bytes of a Read's buffers, or the first of them.
func (e *entry) sinkAt(to uint64, n int) (ddp.Span, error) {
	off := to - e.sink
	if off > uint64(e.length) || uint64(n) > uint64(e.length)-off {
		return ddp.Span{}, ddp.TaggedBounds
	}
	if len(e.more) > 0 {
		return ddp.Span{Bytes: e.pieces.find(e.Data, e.more, off, n)}, nil
	}
	return ddp.Span{Bytes: e.Data[off : off+uint64(n) : off+uint64(n)]}, nil
}

// placeAnswer says where an answer on queue 3 goes.
func (s *Stream) placeAnswer(op Opcode, h *ddp.Header, n int) (ddp.Span, error) {
	r := &s.requester
	if !s.cfg.Unordered && h.MSN != r.answers+1 {
		return ddp.Span{}, ddp.UntaggedMSN
	}
	for i := r.waiting.head; i != r.waiting.tail; i++ {
		place := *r.waiting.at(i)
		if place == placeReady {
			continue
		}
		e := r.work.at(place)
		if e.Op == OpRead || e.answer != h.MSN {
			if !s.cfg.Unordered {
				break // an answer to something else is due
			}
			continue
		}
		if op != e.Op.answer() {
			return ddp.Span{}, ddp.OperationOpcode
		}
		return window(e.reply[:], h.MO, n)
	}
	if r.waiting.len() > 0 && h.MSN == r.answers+1 {
		return ddp.Span{}, ddp.OperationOpcode
	}
	return ddp.Span{}, ddp.UntaggedNoBuffer
}

// answer is the opcode of what the peer answers.
func (o Op) answer() Opcode {
	switch o {
	case OpFetchAdd, OpCompareSwap:
		return AtomicResponse
	case OpFlush:
		return FlushResponse
	case OpVerify:
		return VerifyResponse
	case OpAtomicWrite:
		return AtomicWriteReply
	}
	return ReadResponse
}
