package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// smallLength has room for a frame of the handshake, an acknowledgement or a probe.
const smallLength = frame.MostSessionAck + frame.ChecksumSize

// put adds a frame to the batch, with a checksum if the peer takes those.
func (s *sending) put(b *outgoing.Batch, buf, rest []byte, again bool) {
	s.putAs(b, buf, rest, again, s.checks)
}

// putAs is put of a frame that is to have a checksum, or none. There is room for one.
func (s *sending) putAs(b *outgoing.Batch, buf, rest []byte, again, checked bool) {
	s.complete(b, b.Add(s.terms.to, buf, rest, nil), again, checked)
}

// complete completes a frame of the batch, whose headers are written.
func (s *sending) complete(b *outgoing.Batch, o *transport.Outgoing, again, checked bool) {
	if checked {
		if o.Rest == nil {
			o.Buf = addChecksum(o.Buf, b.Headroom())
		} else {
			o.Tail = o.Buf[len(o.Buf) : len(o.Buf)+frame.ChecksumSize]
			frame.PutChecksum(o.Buf[b.Headroom():], o.Rest, o.Tail)
		}
	}
	s.inFlight.Batched()
	s.counters.FramesSent++
	s.counters.BytesSent += uint64(o.Len() - b.Headroom())
	if t := s.terms.cfg.Trace; t != nil && t.FrameSent != nil {
		t.FrameSent(s.terms.name(), o.Buf[b.Headroom():], again)
	}
}

// buildLost makes a lost frame again: same id, same messages, acknowledgements
// as they are now (DGRDMA-026, DGRDMA-031).
func (s *sending) buildLost(b *outgoing.Batch, now ack.Instant) {
	id, _ := s.unacked.NextLost(now)
	copied := s.unacked.Resend(now, id)
	o := s.inFlight.At(id)
	var buf, rest []byte
	var carried bool
	if o.IsKept() {
		buf = o.Bytes()
		carried = s.wire.headAgain(buf[b.Headroom():], id, copied)
	} else {
		buf, rest = s.framePart(b, o.First, &o.Part)
		carried = s.wire.head(buf[b.Headroom():], id, copied)
	}
	if carried {
		s.counters.AcksCarried++
	}
	if s.unacked.Timeouts() > 0 {
		s.counters.RetransmitsTimed++
	} else {
		s.counters.RetransmitsFast++
	}
	if t := s.terms.cfg.Trace; t != nil && t.FrameLost != nil {
		t.FrameLost(s.terms.name(), frame.Seq(id), s.unacked.Timeouts() > 0)
	}
	s.put(b, buf, rest, true)
}

// buildNew makes a frame of what is queued, t first, and more where that goes on alone.
func (s *sending) buildNew(b *outgoing.Batch, now ack.Instant, t *Transaction) {
	if t.entry.HasBegun() || now >= s.holding.Add(s.terms.cfg.Coalesce) {
		s.holding = now
	}
	var buf, rest []byte
	var id uint32
	if s.atWhole(t) {
		buf, rest, id = s.buildPart(b, now, t)
	} else {
		buf, id = s.buildMessages(b, now, s.longestFor(t))
	}
	carried := s.wire.head(buf[b.Headroom():], id, 0)
	if carried {
		s.counters.AcksCarried++
	}
	if carried || now < s.aloneAt.Add(s.terms.profile.AckDelay) {
		s.quick = false // there is company
	}
	if s.terms.profile.NoAcks {
		s.unheard = append(s.unheard, id)
	}
	s.put(b, buf, rest, false)
	if o := s.inFlight.At(id); !o.IsKept() {
		s.buildRun(b, now, t, id)
	}
}

// buildPart makes a frame of what is next of a transaction that is in the midst of a long segment.
func (s *sending) buildPart(b *outgoing.Batch, now ack.Instant, t *Transaction) (buf, rest []byte, id uint32) {
	length := s.whole()
	p := t.nextPart()
	s.tookParts(t, 1)
	if s.inFlight.MayRemake() && t.Copied == nil {
		buf, rest = s.framePart(b, t, &p)
		id = s.unacked.Track(now, length)
		s.inFlight.Note(id, t, &p, b.Headroom()+length)
		return buf, rest, id
	}
	buf = s.inFlight.Buffer()[:b.Headroom()+length]
	s.headPart(buf[b.Headroom():], t, &p)
	copy(buf[b.Headroom()+s.terms.partHead():], s.bytesOf(t, &p))
	id = s.unacked.Track(now, length)
	s.inFlight.Keep(id, buf, t, 1)
	return buf, nil, id
}

// buildRun makes frames of what goes on where the last one ended, a part under that id, while
// nothing else may be next.
func (s *sending) buildRun(b *outgoing.Batch, now ack.Instant, t *Transaction, id uint32) {
	if _, owed := s.wire.ackAt(); owed || !s.proven || s.terms.profile.SlotTable > 0 || s.posted.Next() != t {
		return
	}
	data := t.Segments[t.segment].Bytes[t.offset:]
	shape := outgoing.Shape{Head: s.terms.partHead(), Data: s.leastChunk, Spare: s.spare()}
	most := min(b.RunRoom(shape), (len(data)-s.path.Size()+shape.Data-1)/shape.Data, (s.posted.InARow(&t.entry)-1)/shape.Data+1)
	if most <= 0 {
		return
	}
	n := s.unacked.TrackRun(now, s.path.Size(), s.whole(), most)
	if n == 0 {
		return
	}
	first := t.nextPart()
	s.inFlight.NoteRun(id+1, n, t, first, shape.Data, b.Headroom()+s.whole())
	s.tookParts(t, n)
	m := &s.partMessage
	first.Index, first.Offset = first.Index-1, first.Offset-uint32(shape.Data)
	s.describePart(m, t, &first)
	run := s.wire.run(id, m)
	frames := b.AddRun(s.terms.to, shape, data[:n*shape.Data])
	if frames[0].Rest != nil {
		t.leaves = b.Number() + 1
	}
	for i := range frames {
		run.Next(m)
		run.Put(frames[i].Buf[b.Headroom():])
		s.complete(b, &frames[i], false, s.checks)
	}
	if s.terms.profile.NoAcks {
		for i := range uint32(n) {
			s.unheard = append(s.unheard, id+1+i)
		}
	}
}

// buildMessages makes a frame of up to that many bytes of what is next.
func (s *sending) buildMessages(b *outgoing.Batch, now ack.Instant, most int) (buf []byte, id uint32) {
	buf = s.inFlight.Buffer()
	var w frame.Writer
	w.InitAfter(buf[b.Headroom():b.Headroom()+most], s.terms.header)
	first, n := s.appendTransactions(now, &w)
	if n == 0 {
		panic("BUG: a frame without messages")
	}
	buf = buf[:b.Headroom()+w.Len()]
	id = s.unacked.Track(now, w.Len())
	s.inFlight.Keep(id, buf, first, n)
	return buf, id
}

// atWhole reports whether a transaction is in the midst of a long segment, so that the next frame
// holds one message that fills it: most frames of large transactions do.
func (s *sending) atWhole(t *Transaction) bool {
	return t.entry.HasBegun() && !t.cutShort && len(t.Segments[t.segment].Bytes)-int(t.offset) > s.path.Size() // else it may be the end
}

// whole returns the length of such a frame.
func (s *sending) whole() int { return s.terms.partHead() + s.leastChunk }

// nextPart returns what such a frame holds.
func (t *Transaction) nextPart() outgoing.Part {
	return outgoing.Part{Segment: t.segment, Offset: t.offset, Index: t.packed + 1}
}

// tookParts notes that n such frames were made, as fill does in more time.
func (s *sending) tookParts(t *Transaction, n int) {
	t.packed += uint16(n)
	t.offset += uint32(n * s.leastChunk)
	t.frames += uint32(n)
	for n > 0 { // turn by turn
		k := min(n, (s.posted.Left(&t.entry)-1)/s.leastChunk+1)
		s.posted.Built(&t.entry, k*s.leastChunk, false)
		n -= k
	}
}

func (s *sending) describePart(m *frame.Message, t *Transaction, p *outgoing.Part) {
	t.describe(m)
	m.Index, m.Addr, m.Len = p.Index, t.address(t.Segments[p.Segment].Addr)+p.Offset, uint16(s.leastChunk)
}

// bytesOf returns the data of such a frame.
func (s *sending) bytesOf(t *Transaction, p *outgoing.Part) []byte {
	return t.Segments[p.Segment].Bytes[p.Offset:][:s.leastChunk]
}

// partHead is the length of what is in front of it.
func (t *terms) partHead() int { return t.header + frame.MessageHeaderSize }

// headPart writes the header of the message of such a frame.
func (s *sending) headPart(b []byte, t *Transaction, p *outgoing.Part) {
	var m frame.Message
	s.describePart(&m, t, p)
	m.Put(b[s.terms.header:])
}

// framePart makes such a frame, but for its first header. rest is the end of it that stays
// where it is.
func (s *sending) framePart(b *outgoing.Batch, t *Transaction, p *outgoing.Part) (buf, rest []byte) {
	buf, rest = frameOf(b, s.terms.partHead(), s.bytesOf(t, p), t, s.spare())
	s.headPart(buf[b.Headroom():], t, p)
	return buf, rest
}

// frameOf returns the buffer of a frame that ends with bytes of a transaction, see [outgoing.Batch.Frame]. Where those stay where
// they are, Done waits until the batch has left.
func frameOf(b *outgoing.Batch, head int, end []byte, t *Transaction, spare int) (buf, rest []byte) {
	if buf, rest = b.Frame(head, end, spare); rest != nil {
		t.leaves = b.Number() + 1
	}
	return buf, rest
}
