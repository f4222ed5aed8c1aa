package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// fillWhole fills a frame with one message from the midst of a long segment, and
// returns the frame's length. 0: the transaction is not in such a place. It does
// what fill does, for most frames of large transactions, in less time.
func (s *sending) fillWhole(b []byte, t *Transaction) int {
	if !t.begun {
		return 0
	}
	seg := &t.Segments[t.segment]
	rest := seg.Bytes[t.offset:]
	if len(rest) <= s.frameMax {
		return 0 // it may be the end
	}
	t.packed++
	var m frame.Message
	t.describe(&m)
	m.Index, m.Addr, m.Len = t.packed, t.address(seg.Addr)+uint32(t.offset), uint16(s.leastChunk)
	const at = frame.HeaderSize + frame.MessageHeaderSize
	m.Put(b[frame.HeaderSize:])
	copy(b[at:at+s.leastChunk], rest)
	t.offset += s.leastChunk
	t.frames++
	s.posted.packed(t, s.leastChunk)
	return at + s.leastChunk
}

// fill adds messages of queued transactions to w and returns the first of them
// and how many there are.
func (s *sending) fill(now ack.Instant, w *frame.Writer) (first *Transaction, n int) {
	l := s.layout()
	for last := first; ; {
		t := s.mayBe(s.posted.next())
		if t == nil || !s.posted.joins(last, t) {
			break
		}
		if !t.begun {
			room := w.Room()
			bytes, count, fits := l.alone(t)
			fitsHere := bytes <= room+frame.MessageHeaderSize
			if fits && !fitsHere {
				// Small transactions are not cut: frames stay fewer.
				break
			}
			if !fitsHere || l.noLength4 {
				count = l.messages(t, room)
			}
			if count > frame.MaxMessages {
				break // Post found that it has no more when it starts a frame
			}
			s.begin(now, t, count)
		}
		length := w.Len()
		s.pour(w, &l, t)
		if w.Len() > length {
			t.frames++
			if n++; first == nil {
				first = t
			}
		}
		s.posted.packed(t, w.Len()-length)
		if !t.complete {
			break
		}
		last = t
	}
	return first, n
}

// mayBe returns the transaction that is next, or one that has begun if no other may
// begin; nil: there is none.
func (s *sending) mayBe(next *Transaction) *Transaction {
	if next == nil || next.begun || s.mayOpen() && !(s.posted.crowded() && s.long(next)) {
		return next
	}
	return s.posted.nextBegun()
}

// long reports whether a transaction, which is not urgent, takes more than a frame.
func (s *sending) long(t *Transaction) bool {
	if s.posted.queue(t) == &s.posted.urgent {
		return false
	}
	l := s.layout()
	_, _, fits := l.alone(t)
	return !fits
}

// mayOpen reports whether the peer can take one more transaction, of which nothing was
// sent.
func (s *sending) mayOpen() bool {
	oldest := s.posted.begun.head
	return oldest == nil || int(s.nextTxn-oldest.id) < s.profile.OpenTransactions
}

func (s *sending) begin(now ack.Instant, t *Transaction, count int) {
	t.begun, t.begunAt = true, now
	t.id = s.nextTxn
	if t.letter {
		t.base = s.kind.base(t.flow.name)
	}
	t.count = uint16(count)
	s.posted.begin(t)
	s.nextTxn++
	if bit := s.profile.SkipBit; s.nextTxn&bit != 0 {
		s.nextTxn = (s.nextTxn | (bit - 1)) + 1
	}
}

// pour adds as many of the transaction's messages as fit.
func (s *sending) pour(w *frame.Writer, l *layout, t *Transaction) {
	var m frame.Message
	t.describe(&m)
	if t.count == 0 {
		m.Index = s.emptyIndex
		w.Add(&m)
		t.packedWhole()
		return
	}
	for t.segment < len(t.Segments) {
		seg := &t.Segments[t.segment]
		rest := seg.Bytes[t.offset:]
		if len(rest) == 0 {
			t.segment, t.offset = t.segment+1, 0
			continue
		}
		take := l.cut(len(rest), w.Room())
		if take == 0 {
			return
		}
		t.packed++
		m.Index = t.packed
		m.Addr = t.address(seg.Addr) + uint32(t.offset)
		m.Len = uint16(roundUp(take, l.final))
		dst := w.Add(&m)
		clear(dst[copy(dst, rest[:take]):])
		t.offset += take
	}
	t.packedWhole()
}
