package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/queue"
	"github.com/dgrdma/dgrdma/endpoint/segmentation"
	"github.com/dgrdma/dgrdma/frame"
)

// appendTransactions adds messages of queued transactions to w and returns the first of them
// and how many there are.
func (s *sending) appendTransactions(now ack.Instant, w *frame.Writer) (first *Transaction, n int) {
	l := s.layout()
	for last := (*queue.Entry[Transaction])(nil); ; {
		t := s.posted.Next()
		if t != nil && !t.entry.HasBegun() && !s.mayBegin(t) {
			t = s.nextToLeave(t)
		}
		if t == nil || !s.posted.Joins(last, &t.entry) {
			break
		}
		if !t.entry.HasBegun() {
			room := w.Room()
			body, count, fits := t.uncut(&l)
			fitsHere := body <= room+frame.MessageHeaderSize
			if fits && !fitsHere {
				// Small transactions are not cut: frames stay fewer.
				break
			}
			short := s.isCutShort(t)
			if short && (n > 0 || s.mustKnowPathMTU(t)) {
				break // it begins a frame that is short, too, or it is not known how it is to be cut
			}
			t.cutShort = short
			if !fitsHere || l.NoLength4 {
				count = t.messages(s.cut(t, &l), room)
			}
			if count > frame.MaxMessages {
				break // Post found that it has no more when it starts a frame
			}
			s.begin(now, t, count)
		}
		length := w.Len()
		s.appendMessages(w, s.cut(t, &l), t)
		length = w.Len() - length
		if length > 0 {
			t.frames++
			if n++; first == nil {
				first = t
			}
		}
		s.posted.Built(&t.entry, length, t.complete)
		if !t.complete {
			break
		}
		if t.Packed != nil {
			t.Packed(t)
		}
		if t.Copied != nil {
			t.Copied(t)
		}
		last = &t.entry
	}
	return first, n
}

// cut returns how a transaction is cut, where l is how those are of which nothing is in frames.
func (s *sending) cut(t *Transaction, l *segmentation.Layout) *segmentation.Layout {
	if t.cutShort {
		return &s.shortLayout
	}
	return l
}

// begin gives a transaction, which is next, its id.
func (s *sending) begin(now ack.Instant, t *Transaction, count int) {
	t.begunAt = now
	t.id = s.nextTxn
	if o := t.flow.letters; o != nil {
		t.base = s.kind.base(t.flow.name)
		o.begin(t, s.epoch)
	}
	t.count = uint16(count)
	s.posted.Begin(&t.entry)
	s.nextTxn++
	if bit := s.terms.profile.SkipBit; s.nextTxn&bit != 0 {
		s.nextTxn = (s.nextTxn | (bit - 1)) + 1
	}
}

// appendMessages adds as many of the transaction's messages as fit.
func (s *sending) appendMessages(w *frame.Writer, l *segmentation.Layout, t *Transaction) {
	var m frame.Message
	t.describe(&m)
	if t.count == 0 {
		m.Index = s.terms.emptyIndex
		w.Add(&m)
	}
	for int(t.segment) < len(t.Segments) {
		seg := &t.Segments[t.segment]
		rest := seg.Bytes[t.offset:]
		if len(rest) == 0 {
			t.segment, t.offset = t.segment+1, 0
			continue
		}
		take := l.Cut(len(rest), w.Room())
		if take == 0 {
			return
		}
		t.packed++
		m.Index = t.packed
		m.Addr = t.address(seg.Addr) + t.offset
		m.Len = uint16(l.Padded(take))
		dst := w.Add(&m)
		clear(dst[copy(dst, rest[:take]):])
		t.offset += uint32(take)
	}
	if t.packed != t.count {
		panic("BUG: a transaction became another number of messages than it states")
	}
	t.complete = true
}
