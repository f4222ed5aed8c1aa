package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// atWhole reports whether a flow is in the midst of a long segment, so that the next frame
// holds one message that fills it: most frames of large transactions do.
func (s *sending) atWhole(q *Flow) bool {
	t := q.part
	return t != nil && len(t.Segments[t.segment].Bytes)-int(t.offset) > s.frameMax // else it may be the end
}

// whole returns the length of such a frame.
func (s *sending) whole() int { return s.partHead() + s.leastChunk }

// nextPart returns what such a frame holds.
func (t *Transaction) nextPart() part {
	return part{t.segment, t.offset, t.packed + 1}
}

// tookParts notes that n such frames were made, as fill does in more time.
func (s *sending) tookParts(q *Flow, n int) {
	t := q.part
	t.packed += uint16(n)
	t.offset += uint32(n * s.leastChunk)
	t.frames += uint32(n)
	s.posted.packed(q, t, n*s.leastChunk)
}

func (s *sending) describePart(m *frame.Message, t *Transaction, p *part) {
	t.describe(m)
	m.Index, m.Addr, m.Len = p.index, t.address(t.Segments[p.segment].Addr)+p.offset, uint16(s.leastChunk)
}

// bytesOf returns the data of such a frame.
func (s *sending) bytesOf(t *Transaction, p *part) []byte {
	return t.Segments[p.segment].Bytes[p.offset:][:s.leastChunk]
}

// partHead is the length of what is in front of it.
func (t *terms) partHead() int { return t.header + frame.MessageHeaderSize }

// headPart writes the header of the message of such a frame.
func (s *sending) headPart(b []byte, t *Transaction, p *part) {
	var m frame.Message
	s.describePart(&m, t, p)
	m.Put(b[s.header:])
}

// framePart makes such a frame, but for its first header. rest is the end of it that stays
// where it is.
func (s *sending) framePart(b *batch, t *Transaction, p *part) (buf, rest []byte) {
	buf, rest = b.frame(s.partHead(), s.bytesOf(t, p), t, s.spare())
	s.headPart(buf[b.headroom:], t, p)
	return buf, rest
}

// fill adds messages of queued transactions to w and returns the first of them
// and how many there are.
func (s *sending) fill(now ack.Instant, w *frame.Writer) (first *Transaction, n int) {
	l := s.layout()
	for last := first; ; {
		q := s.posted.turn()
		if q == nil || q.part == nil && !s.opens() {
			q = s.mayBe(q)
		}
		if q == nil {
			break
		}
		t := q.first()
		if !s.posted.joins(last, t) {
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
			if !fitsHere && !s.tried {
				break // it is not known how it is to be cut
			}
			if !fitsHere || l.noLength4 {
				count = l.messages(t, room)
			}
			if count > frame.MaxMessages {
				break // Post found that it has no more when it starts a frame
			}
			s.begin(now, q, t, count)
		}
		length := w.Len()
		s.pour(w, &l, t)
		length = w.Len() - length
		if length > 0 {
			t.frames++
			if n++; first == nil {
				first = t
			}
		}
		s.posted.packed(q, t, length)
		if !t.complete {
			break
		}
		// Last, for they may not return: the lanes are whole, and t, which counts a frame
		// that nobody keeps then, is not done.
		if t.Packed != nil {
			t.Packed(t)
		}
		if t.Copied != nil {
			t.Copied(t)
		}
		last = t
	}
	return first, n
}

// mayBe returns the flow whose turn it is, or one that is amid a transaction if none may
// begin; nil: there is none.
func (s *sending) mayBe(turn *Flow) *Flow {
	if turn == nil || turn.part != nil || s.opens() || s.mayOpen() && !s.long(turn) {
		return turn
	}
	return s.posted.turnBegun()
}

// opens reports whether a transaction may begin, however long and of whatever flow.
func (s *sending) opens() bool { return s.mayOpen() && !s.posted.crowded() }

// long reports whether what is next in a flow, which is not urgent, takes more than a frame.
func (s *sending) long(q *Flow) bool {
	if q == &s.posted.urgent {
		return false
	}
	l := s.layout()
	_, _, fits := l.alone(q.first())
	return !fits
}

// mayOpen reports whether the peer can take one more transaction, of which nothing was
// sent.
func (s *sending) mayOpen() bool {
	oldest := s.posted.begun.head
	return oldest == nil || int(s.nextTxn-oldest.id) < s.profile.OpenTransactions
}

// begin gives the first transaction of a flow, which is t, its id.
func (s *sending) begin(now ack.Instant, q *Flow, t *Transaction, count int) {
	t.begun, t.begunAt = true, now
	t.id = s.nextTxn
	if t.letter {
		t.base = s.kind.base(t.flow.name)
	}
	t.count = uint16(count)
	s.posted.begin(q)
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
	}
	for int(t.segment) < len(t.Segments) {
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
		m.Addr = t.address(seg.Addr) + t.offset
		m.Len = uint16(roundUp(take, l.final))
		dst := w.Add(&m)
		clear(dst[copy(dst, rest[:take]):])
		t.offset += uint32(take)
	}
	if t.packed != t.count {
		panic("BUG: a transaction became another number of messages than it states")
	}
	t.complete = true
}
