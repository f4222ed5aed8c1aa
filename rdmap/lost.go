package rdmap

import (
	"fmt"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Lost ends the stream with a Terminate, because the carrier found nothing under memory that it was to fill or to
// send. Detail is what is known of that memory; of a buffer of this side's program the error says also which request
// it belongs to.
func (s *Stream) Lost(e *ddp.LostError, detail error) {
	if s.state != open {
		return
	}
	if e.Received {
		if of := s.bufferOf(&e.Header); of != "" {
			detail = fmt.Errorf("the buffer of %s: %w", of, detail)
		}
		s.fail(&TerminateError{Fault: ddp.LocalDDP, Detail: detail}, &e.Header, e.Payload, nil)
		return
	}
	i := s.given.tail - 1 - uint32(e.Behind)
	switch g := *s.given.at(i); g.kind {
	case givenResponse:
		begun := s.responder.begun
		for ; i != s.given.tail; i++ {
			if s.given.at(i).kind == givenResponse {
				begun--
			}
		}
		q := s.responder.queue.at(begun)
		h := q.op.head()
		h.Last, h.MSN = true, begun+1
		s.fail(&TerminateError{Fault: ddp.OperationStream, Detail: detail}, &h, q.n, nil)
	case givenWork:
		w := s.requester.work.at(g.place)
		s.Fail(ddp.Catastrophic, fmt.Errorf("the data of %v %d: %w", w.Op, w.ID, detail))
	}
}

// bufferOf names the request of this side whose buffer a segment of the peer fills; "": it fills none.
func (s *Stream) bufferOf(h *ddp.Header) string {
	op, err := s.cfg.Extensions.opcode(h)
	switch {
	case err != nil:
	case op == ReadResponse:
		r := s.requester.work.at(*s.requester.waiting.at(s.requester.waiting.head))
		return fmt.Sprintf("%v %d", r.Op, r.ID)
	case !h.Tagged && h.QN == queueSend:
		if b, err := s.buffer(h.MSN); err == nil {
			return fmt.Sprintf("%v %d", OpReceive, b.ID)
		}
	}
	return ""
}
