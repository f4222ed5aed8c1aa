package rdmap

import (
	"errors"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// responder is the half of a stream that answers.
type responder struct {
	// queue has the requests that wait, at most ird, and before begun those whose answers the carrier
	// has, as many again: the peer may see an answer, and ask anew, before the carrier says that it is sent.
	queue    ring[request]
	ird      int
	begun    uint32
	requests uint32 // MSN last delivered on queue 1
	answers  uint32 // MSN last used on queue 3
}

// request is a request of the peer.
type request struct {
	op        Opcode
	delivered bool
	words     [ddp.InlineSize]byte // what the peer sent
	n         int
	span      [1]ddp.Span
	job       jobState
	hash      [HashSize]byte
	hashSize  int
}

type jobState uint8

const (
	jobNone jobState = iota
	jobTaken
	jobDone
)

func newResponder(ird int) responder {
	return responder{queue: newRing[request](2 * max(ird, 1)), ird: ird}
}

// oldest is what was asked for by the request of which the carrier has had the answer for longest.
func (r *responder) oldest() Op {
	q := r.queue.at(r.queue.head)
	switch q.op {
	case ReadRequest:
		return OpRead
	case FlushRequest:
		return OpFlush
	case VerifyRequest:
		return OpVerify
	case AtomicWriteRequest:
		return OpAtomicWrite
	}
	if q.words[3]&15 == fetchAdd {
		return OpFetchAdd
	}
	return OpCompareSwap
}

// sent says that the carrier has sent the oldest response that it had: there is room for
// another request. It returns how many bytes of memory went with it.
func (r *responder) sent() int {
	span := &r.queue.at(r.queue.head).span[0]
	n := len(span.Bytes)
	*span = ddp.Span{}
	r.queue.head++
	return n
}

// validate checks a request before it waits for its turn, so that the peer hears of its fault at once.
func (s *Stream) validate(q *request) error {
	b := q.words[:q.n]
	switch q.op {
	case ReadRequest:
		var r ReadHeader
		if err := r.Parse(b); err != nil {
			return err
		}
		if r.Size == 0 {
			return nil // RDMAP-040: STag and offset of nothing are not looked at
		}
		return s.may(AccessRead, r.SourceSTag, r.SourceTO, r.Size)
	case AtomicRequest:
		var a AtomicHeader
		if err := a.Parse(b); err != nil {
			return err
		}
		return s.may(AccessAtomic, a.STag, a.TO, 8)
	}
	var r RangeHeader
	if err := r.Parse(b); err != nil {
		return err
	}
	switch q.op {
	case FlushRequest:
		flags := byte(0)
		if len(b) == flushSize {
			flags = b[flushSize-1] & (flagPersistent | flagGlobal)
		}
		if flags == 0 {
			return ddp.OperationStream // COMMIT-018, and of a wrong size COMMIT-047
		}
		if flags&flagPersistent != 0 {
			if err := s.may(AccessFlushPersistent, r.STag, r.TO, r.Length); err != nil {
				return err
			}
		}
		if flags&flagGlobal != 0 {
			return s.may(AccessFlushGlobal, r.STag, r.TO, r.Length)
		}
		return nil
	case VerifyRequest:
		if len(b) > verifySize+HashSize {
			return ddp.OperationStream // COMMIT-027: no algorithm has such a hash
		}
		return s.may(AccessVerify, r.STag, r.TO, r.Length)
	}
	if len(b) != atomicWriteSize || r.Length != 8 {
		return ddp.OperationStream
	}
	return s.may(AccessAtomicWrite, r.STag, r.TO, r.Length)
}

func (s *Stream) may(a Access, stag uint32, to uint64, n uint32) error {
	_, err := s.cfg.Memory.Find(a, stag, to, n)
	return err
}

// respond sets m to the answer of the oldest request that has none, if it can be given now. Requests are
// carried out here, one after the other in the order in which they came (RDMAP-038, RDMAPX-035), but for
// those that take their time, which are jobs.
func (s *Stream) respond(m *ddp.Message) bool {
	r := &s.responder
	if !r.queue.has(r.begun) || !r.queue.at(r.begun).delivered || int(r.begun-r.queue.head) >= r.ird {
		return false
	}
	q := r.queue.at(r.begun)
	m.Data, m.InlineSize, m.Length = nil, 0, 0
	switch q.op {
	case ReadRequest:
		var rr ReadHeader
		if rr.Parse(q.words[:q.n]) != nil {
			return false // validate has seen that it can be read
		}
		if rr.Size > 0 {
			span, err := s.cfg.Memory.Find(AccessRead, rr.SourceSTag, rr.SourceTO, rr.Size)
			if err != nil { // withdrawn since
				s.failRequest(err, q)
				return false
			}
			q.span[0] = span
			m.Data = q.span[:]
		}
		m.Header = ReadResponse.head()
		m.STag, m.TO, m.Length = rr.SinkSTag, rr.SinkTO, rr.Size
		r.begun++
		*s.given.add() = given{kind: givenResponse}
		return true
	case AtomicRequest:
		if err := s.doAtomic(m, q); err != nil {
			s.failRequest(err, q)
			return false
		}
	case AtomicWriteRequest:
		var rr RangeHeader
		_ = rr.Parse(q.words[:q.n])
		if err := s.cfg.Memory.AtomicWrite(rr.STag, rr.TO, [8]byte(q.words[verifySize:])); err != nil {
			s.failRequest(err, q)
			return false
		}
		m.Header = AtomicWriteReply.head()
	case FlushRequest, VerifyRequest:
		if q.job == jobNone && s.cfg.Job != nil {
			s.cfg.Job()
		}
		if q.job != jobDone {
			return false
		}
		m.Header = FlushResponse.head()
		if q.op == VerifyRequest {
			m.Header = VerifyResponse.head()
			m.InlineSize = copy(m.Inline[:], q.hash[:q.hashSize])
			m.Length = uint32(m.InlineSize)
		}
	}
	r.begun++
	r.answers++
	m.MSN = r.answers
	*s.given.add() = given{kind: givenResponse}
	return true
}

func (s *Stream) doAtomic(m *ddp.Message, q *request) error {
	var a AtomicHeader
	err := a.Parse(q.words[:q.n])
	if err != nil {
		return err
	}
	var old uint64
	if a.Op == fetchAdd {
		old, err = s.cfg.Memory.FetchAdd(a.STag, a.TO, a.Operand, a.Mask)
	} else {
		old, err = s.cfg.Memory.CompareSwap(a.STag, a.TO, a.Compare, a.CompareMask, a.Operand, a.Mask)
	}
	if err != nil {
		return err
	}
	m.Header = AtomicResponse.head()
	reply := AtomicReplyHeader{ID: a.ID, Old: old}
	m.InlineSize = reply.put(m.Inline[:])
	m.Length = atomicReplySize
	return nil
}

// failRequest ends the stream for a request that was delivered.
func (s *Stream) failRequest(err error, q *request) {
	h := q.op.head()
	h.Last, h.MSN = true, s.responder.begun+1
	s.refuse(err, &h, q.n, q)
}

// refuse ends the stream for a fault in a segment, and returns the fault; q is the request it was of, or nil.
func (s *Stream) refuse(err error, h *ddp.Header, n int, q *request) error {
	f := ddp.OperationStream
	errors.As(err, &f)
	var read []byte
	if q != nil && q.op == ReadRequest {
		read = q.words[:q.n]
	}
	if err == error(f) {
		err = nil // there is nothing to say beyond the fault
	}
	s.fail(&TerminateError{Fault: f, Detail: err}, h, n, read)
	return f
}

// Job is a request that takes its time: it is carried out elsewhere, while the stream goes on.
type Job struct {
	Verify             bool
	Persistent, Global bool
	STag               uint32
	TO                 uint64
	Length             uint32
	// Hash is what the peer expects of a Verify; without one it asks for it.
	Hash     [HashSize]byte
	HashSize int
}

// Job returns the job that is to be done now. There is one at a time, and whoever takes it
// calls [Stream.JobDone].
func (s *Stream) Job(j *Job) bool {
	r := &s.responder
	if s.state != open || !r.queue.has(r.begun) {
		return false
	}
	q := r.queue.at(r.begun)
	if !q.delivered || q.job != jobNone || q.op != FlushRequest && q.op != VerifyRequest {
		return false
	}
	q.job = jobTaken
	var rr RangeHeader
	_ = rr.Parse(q.words[:q.n])
	*j = Job{Verify: q.op == VerifyRequest, STag: rr.STag, TO: rr.TO, Length: rr.Length}
	if j.Verify {
		j.HashSize = copy(j.Hash[:], q.words[verifySize:q.n])
		return true
	}
	j.Persistent = q.words[flushSize-1]&flagPersistent != 0
	j.Global = q.words[flushSize-1]&flagGlobal != 0
	return true
}

// JobDone says how the job ended; hash is that of a Verify.
func (s *Stream) JobDone(hash []byte, err error) {
	r := &s.responder
	if s.state != open {
		return
	}
	q := r.queue.at(r.begun)
	if err != nil {
		s.failRequest(err, q)
		return
	}
	q.job = jobDone
	q.hashSize = copy(q.hash[:], hash)
}
