package rdmap

import (
	"math"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// receives are the buffers for what the peer sends, by the number of the message.
type receives struct {
	queue ring[buffer]
	size  int
	// skipped is 1 if a Send opened the stream, which took no buffer.
	skipped uint32
}

// buffer is a receive, and for immediate data the place of their eight bytes.
type buffer struct {
	Receive
	size      uint64      // of all its bytes
	pieces    scatter     // of these
	to        Completions // nil: Config.Received
	immediate [immediateSize]byte
}

func newReceives(n int) receives { return receives{queue: newRing[buffer](n), size: n} }

// PostReceive queues a buffer for one message of the peer. It can be done before the peer is
// there.
func (s *Stream) PostReceive(r Receive) error { return s.PostReceiveTo(r, nil) }

// PostReceiveTo queues one whose completion is not for [Config.Received].
func (s *Stream) PostReceiveTo(r Receive, to Completions) error {
	switch {
	case s.state != open:
		return s.cause
	case s.cfg.Shared != nil:
		return ErrInvalid
	case s.receives.queue.len() >= s.receives.size:
		return ErrFull
	}
	*s.receives.queue.add() = buffer{Receive: r, size: total(r.Data, r.More), to: to}
	return nil
}

// buffer returns the buffer of message msn on queue 0, taking shared ones as far as needed.
func (s *Stream) buffer(msn uint32) (*buffer, error) {
	r := &s.receives
	i := msn - 1 - r.skipped
	ahead := i - r.queue.head
	if ahead > math.MaxInt32 || !s.cfg.Unordered && ahead != 0 {
		return nil, ddp.UntaggedMSN
	}
	for !r.queue.has(i) {
		if s.cfg.Shared == nil || r.queue.len() >= r.size {
			return nil, ddp.UntaggedNoBuffer
		}
		taken, ok := s.cfg.Shared.Take()
		if !ok {
			return nil, ddp.UntaggedNoBuffer
		}
		*r.queue.add() = buffer{Receive: taken, size: total(taken.Data, taken.More)}
	}
	return r.queue.at(i), nil
}

func (s *Stream) flushReceives(err error) {
	for s.receives.queue.len() > 0 {
		b := s.receives.queue.at(s.receives.queue.head)
		s.completion = Completion{ID: b.ID, Op: OpReceive, Err: err, Owner: s.cfg.Owner}
		s.received(b)
	}
}

// received gives the completion to who hears of the oldest receive, which is b, and drops it.
func (s *Stream) received(b *buffer) {
	to := s.cfg.Received
	if b.to != nil {
		to = b.to
	}
	*b = buffer{}
	s.receives.queue.head++
	to.Complete(&s.completion)
}
