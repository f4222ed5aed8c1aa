package rdmap

import (
	"bytes"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Deliver is what a carrier tells, see [ddp.Sink].
func (s *Stream) Deliver(h *ddp.Header, n uint32) error {
	if s.state != open {
		return s.cause
	}
	op, err := s.cfg.Extensions.opcode(h)
	if err != nil {
		return s.refuse(err, h, int(n), nil)
	}
	s.heard = true
	switch {
	case op == Write:
		s.stats.Written++
		s.stats.Served[OpWrite]++
		s.stats.WrittenBytes += uint64(n)
		return nil // RDMAP-032: the program is not told
	case op == ReadResponse:
		err = s.deliverRead(n)
	case h.QN == queueSend:
		err = s.deliverSend(op, h, n)
	case h.QN == queueRequest:
		return s.deliverRequest(h, n)
	case h.QN == queueTerminate:
		s.cause = ParseTerminate(s.fromPeer[:min(int(n), len(s.fromPeer))], !s.cfg.Initiator && s.onlyReply())
		s.state = terminated
		return s.cause
	default:
		err = s.deliverAnswer(op, n)
	}
	if err != nil {
		return s.refuse(err, h, int(n), nil)
	}
	return nil
}

// onlyReply says that the peer has seen nothing of this side but its reply.
func (s *Stream) onlyReply() bool {
	return s.requester.taken == 0 && s.responder.begun == 0
}

func (s *Stream) deliverSend(op Opcode, h *ddp.Header, n uint32) error {
	if s.readySend(op, h, int(n)) && s.receives.skipped == 0 {
		s.receives.skipped = 1
		return nil
	}
	if h.MSN-1-s.receives.skipped != s.receives.queue.head {
		return ddp.UntaggedMSN
	}
	b, err := s.buffer(h.MSN)
	if err != nil {
		return err
	}
	kind := OpSend
	c := &s.completion
	*c = Completion{ID: b.ID, Op: OpReceive, Length: n, Owner: s.cfg.Owner}
	switch op {
	case Immediate, ImmediateSE:
		if n != immediateSize {
			return ddp.OperationStream // RDMAPX-039
		}
		c.Immediate, c.Payload, c.Solicited = true, b.immediate, op == ImmediateSE
		kind = OpImmediate
	case SendInvalidate, SendSEInvalidate:
		// RDMAP-051: when the message is in place, and before the program hears of it.
		if err := s.cfg.Memory.Withdraw(h.Invalidate); err != nil {
			return err
		}
		c.Invalidated, c.STag, c.Solicited = true, h.Invalidate, op == SendSEInvalidate
	default:
		c.Solicited = op == SendSE
	}
	s.stats.Received++
	s.stats.Served[kind]++
	s.stats.ReceivedBytes += uint64(n)
	s.received(b)
	return nil
}

func (s *Stream) deliverRequest(h *ddp.Header, n uint32) error {
	r := &s.responder
	if h.MSN != r.requests+1 || !r.queue.has(h.MSN-1) {
		return s.refuse(ddp.UntaggedMSN, h, int(n), nil)
	}
	q := r.queue.at(h.MSN - 1)
	q.n = int(n)
	r.requests++
	if err := s.validate(q); err != nil {
		return s.refuse(err, h, int(n), q)
	}
	q.delivered = true
	return nil
}

func (s *Stream) deliverRead(n uint32) error {
	r := &s.requester
	if r.waiting.len() == 0 {
		return ddp.OperationOpcode
	}
	place := *r.waiting.at(r.waiting.head)
	if place == placeReady {
		if n != 0 {
			return ddp.TaggedBounds
		}
		r.answered()
		return nil
	}
	e := r.work.at(place)
	if e.Op != OpRead {
		return ddp.OperationOpcode
	}
	if n != e.length {
		return ddp.TaggedBounds // too short: what is missing was never placed
	}
	r.answered()
	e.done = true
	s.complete()
	return nil
}

func (s *Stream) deliverAnswer(op Opcode, n uint32) error {
	r := &s.requester
	if r.waiting.len() == 0 || *r.waiting.at(r.waiting.head) == placeReady {
		return ddp.UntaggedNoBuffer
	}
	e := r.work.at(*r.waiting.at(r.waiting.head))
	if op != e.Op.answer() {
		return ddp.OperationOpcode
	}
	e.got = int(n)
	switch op {
	case AtomicResponse:
		if n != atomicReplySize {
			return ddp.OperationStream
		}
		var a AtomicReplyHeader
		a.Parse(e.reply[:])
		if a.ID != e.request {
			return ddp.OperationStream // RDMAPX-025
		}
		e.old = a.Old
	case VerifyResponse:
		if n == 0 || e.hashSize > 0 && !bytes.Equal(e.reply[:n], e.hash[:e.hashSize]) {
			return ddp.OperationStream
		}
	default:
		if n != 0 {
			return ddp.OperationStream
		}
	}
	r.answers++
	r.answered()
	e.done = true
	s.complete()
	return nil
}

// answered drops the oldest request that waited.
func (r *requester) answered() {
	r.waiting.head++
	r.alone = false
}
