package rdmap

import (
	"fmt"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// requester is the half of a stream that asks: the send queue, and what the peer has not
// answered yet.
type requester struct {
	work   ring[entry]
	taken  uint32 // the first entry that the carrier has not been given
	posted bool
	// waiting are the places of requests that the peer has to answer, in the order in which it will
	// (RDMAP-076, RDMAPX-029).
	waiting ring[uint32]
	ord     int
	// alone says that the one request outstanding must stay alone.
	alone bool

	sends, requests uint32 // MSNs last used, on queues 0 and 1
	answers         uint32 // MSN last delivered on queue 3
	expected        uint32 // MSN of the answer to the last request that is answered there
	sink            uint64 // offset that the next Read names
}

// entry is a work request on its way.
type entry struct {
	Work
	to     Completions // nil: Config.Sent
	spans  []ddp.Span  // the buffers of Work, as carriers want them
	more   [][]byte    // those of a Read that has more than one
	pieces scatter     // of these
	length uint32
	sent   bool
	done   bool
	// Of a Read: the offset it named. Of other requests that are answered: their own MSN, that of
	// the answer, and where it is placed.
	sink     uint64
	request  uint32
	answer   uint32
	reply    [HashSize]byte
	hash     [HashSize]byte // what a Verify expects
	hashSize int
	old      uint64
	got      int // length of a reply
	err      error
}

// sinkSTag names the buffers of Reads to the peer. They are found by the order of requests, and no STag of
// registered memory is 0 in its upper 24 bits, so that nobody else can write there.
const sinkSTag = 0x42

// placeReady is the place in waiting of the Read that opens a stream.
const placeReady = ^uint32(0)

func newRequester(sends, ord int) requester {
	return requester{work: newRing[entry](sends), waiting: newRing[uint32](max(ord, 1)), ord: ord}
}

// Post queues a work request. It copies w, but for the buffers that w names.
func (s *Stream) Post(w *Work) error { return s.PostTo(w, nil) }

// PostTo queues one whose completion is not for [Config.Sent].
func (s *Stream) PostTo(w *Work, to Completions) error {
	if s.state != open {
		return s.cause
	}
	length, err := w.length()
	if err != nil {
		return err
	}
	r := &s.requester
	switch {
	case w.Op.needs()&^s.cfg.Extensions != 0:
		return fmt.Errorf("%w: %v needs %v", ErrNotAgreed, w.Op, w.Op.needs())
	case w.Op.answered() && s.cfg.ORD == 0:
		return ErrNoReads
	case r.work.len() == len(r.work.entries) || r.work.len() >= s.cfg.Sends:
		return ErrFull
	}
	r.posted = true
	e := r.work.add()
	spans, pieces := e.spans[:0], e.more[:0]
	*e = entry{Work: *w, to: to, length: length}
	switch w.Op {
	case OpRead:
		pieces = append(pieces, w.More...)
	case OpSend, OpWrite:
		if len(w.Data) > 0 {
			spans = append(spans, ddp.Span{Bytes: w.Data})
		}
		for _, more := range w.More {
			if len(more) > 0 {
				spans = append(spans, ddp.Span{Bytes: more})
			}
		}
	}
	e.hashSize = copy(e.hash[:], w.Hash)
	e.Hash, e.More, e.spans, e.more = nil, nil, spans, pieces
	return nil
}

// request sets m to the next work request that may go now.
func (s *Stream) request(m *ddp.Message) bool {
	r := &s.requester
	for r.taken != r.work.tail {
		e := r.work.at(r.taken)
		if e.Fence && r.waiting.len() > 0 {
			return false // RDMAP-077
		}
		if e.Op == OpInvalidate {
			r.taken++
			e.err = s.cfg.Memory.Invalidate(e.Invalidate)
			e.sent, e.done = true, true
			s.complete()
			continue
		}
		if e.Op.answered() && !r.mayAsk(e) {
			return false
		}
		place := r.taken
		r.taken++
		s.compose(m, e, place)
		*s.given.add() = given{givenWork, place}
		return true
	}
	return false
}

// mayAsk says that one more request may be outstanding. A Read of nothing stays alone: siw answers
// one behind others with their data (S6).
func (r *requester) mayAsk(e *entry) bool {
	n := r.waiting.len()
	if n == 0 {
		r.alone = e.Op == OpRead && e.length == 0
		return true
	}
	return n < r.ord && !r.alone && !(e.Op == OpRead && e.length == 0)
}

// compose writes the message of a work request.
func (s *Stream) compose(m *ddp.Message, e *entry, place uint32) {
	r := &s.requester
	m.InlineSize, m.Data, m.Length = 0, nil, e.length
	switch e.Op {
	case OpWrite:
		m.Header = Write.head()
		m.STag, m.TO = e.STag, e.TO
		m.Data = e.spans
		return
	case OpSend, OpImmediate:
		m.Header = e.sendOpcode().head()
		if e.Op == OpSend && e.Invalidating {
			m.Invalidate = e.Invalidate
		}
		r.sends++
		m.MSN = r.sends
		m.Data = e.spans
		if e.Op == OpImmediate {
			m.InlineSize = copy(m.Inline[:], e.Payload[:])
			m.Length = immediateSize
		}
		return
	}
	r.requests++
	e.request = r.requests
	*r.waiting.add() = place
	b := m.Inline[:]
	switch e.Op {
	case OpRead:
		m.Header = ReadRequest.head()
		e.sink = r.sink
		r.sink += 1 << 32 // each Read has offsets of its own
		q := ReadHeader{SinkSTag: sinkSTag, SinkTO: e.sink, Size: e.length, SourceSTag: e.STag, SourceTO: e.TO}
		m.InlineSize = q.put(b)
	case OpFetchAdd, OpCompareSwap:
		m.Header = AtomicRequest.head()
		q := e.atomic()
		m.InlineSize = q.put(b)
	case OpFlush:
		m.Header = FlushRequest.head()
		q := RangeHeader{STag: e.STag, Length: e.Length, TO: e.TO}
		q.put(b)
		clear(b[verifySize:flushSize])
		if e.Persistent {
			b[flushSize-1] |= flagPersistent
		}
		if e.Global {
			b[flushSize-1] |= flagGlobal
		}
		m.InlineSize = flushSize
	case OpVerify:
		m.Header = VerifyRequest.head()
		q := RangeHeader{STag: e.STag, Length: e.Length, TO: e.TO}
		m.InlineSize = q.put(b)
		m.InlineSize += copy(b[verifySize:], e.hash[:e.hashSize])
	case OpAtomicWrite:
		m.Header = AtomicWriteRequest.head()
		q := RangeHeader{STag: e.STag, Length: 8, TO: e.TO}
		q.put(b)
		copy(b[verifySize:], e.Payload[:])
		m.InlineSize = atomicWriteSize
	}
	if e.Op != OpRead {
		r.expected++
		e.answer = r.expected
	}
	m.MSN = r.requests
	m.Length = uint32(m.InlineSize)
}

func (e *entry) sendOpcode() Opcode {
	switch {
	case e.Op == OpImmediate && e.Solicited:
		return ImmediateSE
	case e.Op == OpImmediate:
		return Immediate
	case e.Solicited && e.Invalidating:
		return SendSEInvalidate
	case e.Invalidating:
		return SendInvalidate
	case e.Solicited:
		return SendSE
	}
	return Send
}

// atomic is the header of FetchAdd and CompareSwap (RDMAPX 1.3).
func (e *entry) atomic() AtomicHeader {
	a := AtomicHeader{ID: e.request, STag: e.STag, TO: e.TO, Operand: e.Operand, CompareMask: ^uint64(0)}
	if e.Op == OpFetchAdd {
		a.Op = fetchAdd
		if e.Masked {
			a.Mask = e.Mask
		}
		return a
	}
	a.Op, a.Compare, a.Mask = cmpSwap, e.Compare, ^uint64(0)
	if e.Masked {
		a.Mask, a.CompareMask = e.Mask, e.CompareMask
	}
	return a
}

// workSent says that the carrier has sent a request. Whoever answers may have been quicker.
func (s *Stream) workSent(place uint32) {
	e := s.requester.work.at(place)
	e.sent = true
	if !e.Op.answered() {
		e.done = true
	}
}

// complete tells about requests that are done, in the order in which they were posted (RDMAP-071).
func (s *Stream) complete() {
	r := &s.requester
	for r.work.len() > 0 {
		e := r.work.at(r.work.head)
		if !e.done || !e.sent {
			return
		}
		s.stats.count(e)
		if !e.Silent || e.err != nil {
			c := &s.completion
			*c = Completion{ID: e.ID, Op: e.Op, Err: e.err, Length: e.length, Owner: s.cfg.Owner, Old: e.old}
			if e.Op == OpVerify {
				c.HashSize = copy(c.Hash[:], e.reply[:e.got])
			}
			s.tell(e)
		}
		e.release()
		r.work.head++
	}
}

// tell gives the completion to who hears of a request.
func (s *Stream) tell(e *entry) {
	to := s.cfg.Sent
	if e.to != nil {
		to = e.to
	}
	to.Complete(&s.completion)
}

// release lets go of the program's buffers.
func (e *entry) release() {
	e.Data = nil
	clear(e.spans)
	clear(e.more)
}

func (s *Stream) flushWork(err error) {
	r := &s.requester
	for ; r.work.len() > 0; r.work.head++ {
		e := r.work.at(r.work.head)
		s.completion = Completion{ID: e.ID, Op: e.Op, Err: err, Owner: s.cfg.Owner}
		s.tell(e)
		e.release()
	}
	r.taken, r.waiting.head = r.work.tail, r.waiting.tail
}

// Room is how many work requests the send queue takes now.
func (s *Stream) Room() int { return s.cfg.Sends - s.requester.work.len() }

// Asked says that the program has posted a work request since the stream was opened.
func (s *Stream) Asked() bool { return s.requester.posted }
