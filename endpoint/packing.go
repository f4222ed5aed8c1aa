package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

const (
	// probeLength is the least Ethernet payload. Shorter frames are padded by
	// the link, and an FPGA reads that padding as another header (quirk F3).
	probeLength = 46
	probeOwnID  = 20                             // where that header has its id: ours is known there, and refused
	smallLength = sizedSize + frame.ChecksumSize // room for a hello, an acknowledgement or a probe
)

// leastHold is how long an acknowledgement waits that found no id to travel under.
// Arbitrary: short beside the time after which a frame is sent again.
const leastHold = time.Millisecond

// pack adds what the connection has to send to the batch. It reports whether
// the batch became full before everything was in.
func (s *sending) pack(b *batch, now ack.Instant) (more bool) {
	// Before the frames leave, so that no acknowledgement seems to be of unsent ones.
	defer func() { s.nextID.Store(s.unacked.Next()) }()
	if s.kind.introduce(b, now) {
		return true
	}
	if s.err != nil && !s.parting {
		return false
	}
	s.releaseSent()
	if s.ready {
		for s.err == nil {
			if b.full() || s.remakes() && !b.fits(s.flight.full) {
				return true
			}
			if !s.packLost(b, now) && !s.packNew(b, now) {
				break
			}
		}
		if s.probe { // there is room: else it would not come to this
			s.probe = false
			s.packProbe(b, now)
		}
		for {
			// Who parts leaves nothing owed, also where it began to part behind now.
			if at, owed := s.wire.ackAt(); !owed || at > now && !s.parting {
				break
			}
			if b.full() {
				return true
			}
			if !s.wire.packAck(b, now) {
				break
			}
		}
	}
	if s.parting {
		if b.full() {
			return true
		}
		s.kind.goodbye(b, now)
		s.parting = false
	}
	s.wake(now)
	return false
}

// put adds a frame to the batch, with a checksum if the peer takes those.
func (s *sending) put(b *batch, buf, rest []byte, again bool) { s.putAs(b, buf, rest, again, s.checks) }

// putAs is put of a frame that is to have a checksum, or none. There is room for one.
func (s *sending) putAs(b *batch, buf, rest []byte, again, checked bool) {
	var tail []byte
	switch {
	case !checked:
	case rest == nil:
		buf = addChecksum(buf, b.headroom)
	default:
		tail = buf[len(buf) : len(buf)+frame.ChecksumSize]
		frame.PutChecksum(buf[b.headroom:], rest, tail)
	}
	b.add(s.to, buf, rest, tail)
	s.batched = b.number.Load()
	s.counters.FramesSent++
	s.counters.BytesSent += uint64(len(buf) - b.headroom + len(rest) + len(tail))
	if t := s.cfg.Trace; t != nil && t.FrameSent != nil {
		t.FrameSent(s.name(), buf[b.headroom:], again)
	}
}

// packLost sends a lost frame again: same id, same messages, acknowledgements
// as they are now (DGRDMA-026, DGRDMA-031).
func (s *sending) packLost(b *batch, now ack.Instant) bool {
	id, ok := s.unacked.NextLost(now)
	if !ok {
		return false
	}
	copied := s.unacked.Resend(now, id)
	o := s.at(id)
	var buf, rest []byte
	var carried bool
	if o.slab != nil {
		buf = o.buf()
		carried = s.wire.headAgain(buf[b.headroom:], id, copied)
	} else {
		buf, rest = s.framePart(b, o.first, &o.part)
		carried = s.wire.head(buf[b.headroom:], id, copied)
	}
	if carried {
		s.counters.AcksCarried++
	}
	if s.unacked.Timeouts() > 0 {
		s.counters.RetransmitsTimed++
	} else {
		s.counters.RetransmitsFast++
	}
	if t := s.cfg.Trace; t != nil && t.FrameLost != nil {
		t.FrameLost(s.name(), frame.Seq(id), s.unacked.Timeouts() > 0)
	}
	s.put(b, buf, rest, true)
	return true
}

// packNew makes a frame of what is queued.
func (s *sending) packNew(b *batch, now ack.Instant) bool {
	q, what, _ := s.obstacle(now)
	switch what {
	case mayLeave:
	case windowFull:
		s.counters.WindowFull++
		return false
	case wireFull:
		s.counters.Congested++
		return false
	default:
		return false
	}
	if q.part != nil || now >= s.holding.Add(s.cfg.Coalesce) {
		s.holding = now
	}
	var buf, rest []byte
	var id uint32
	if s.atWhole(q) {
		buf, rest, id = s.packPart(b, now, q)
	} else {
		buf, id = s.packMessages(b, now)
	}
	carried := s.wire.head(buf[b.headroom:], id, 0)
	if carried {
		s.counters.AcksCarried++
	}
	if carried || now < s.aloneAt.Add(s.profile.AckDelay) {
		s.quick = false // there is company
	}
	if s.profile.NoAcks {
		s.unheard = append(s.unheard, id)
	}
	s.put(b, buf, rest, false)
	if o := s.at(id); o.slab == nil {
		s.packRun(b, now, q, id)
	}
	return true
}

// packPart makes a frame of what is next in a flow that is in the midst of a long segment.
func (s *sending) packPart(b *batch, now ack.Instant, q *Flow) (buf, rest []byte, id uint32) {
	t, length := q.part, s.whole()
	p := t.nextPart()
	s.tookParts(q, 1)
	if s.remakes() && t.Copied == nil {
		buf, rest = s.framePart(b, t, &p)
		id = s.unacked.Track(now, length)
		s.note(s.unacked, id, t, &p, b.headroom+length)
		return buf, rest, id
	}
	buf = s.buffer()[:b.headroom+length]
	s.headPart(buf[b.headroom:], t, &p)
	copy(buf[b.headroom+s.partHead():], s.bytesOf(t, &p))
	id = s.unacked.Track(now, length)
	s.keep(s.unacked, id, buf, t, 1)
	return buf, nil, id
}

// packRun makes frames of what goes on where the last one ended, a part under that id, while
// nothing else may be next.
func (s *sending) packRun(b *batch, now ack.Instant, q *Flow, id uint32) {
	l := &s.posted
	if _, owed := s.wire.ackAt(); owed || !s.proven || s.profile.SlotTable > 0 || l.turn() != q {
		return
	}
	t := q.part
	seg := &t.Segments[t.segment]
	chunk := s.leastChunk
	most := min(maxBatch-len(b.frames), (len(seg.Bytes)-int(t.offset)-s.frameMax+chunk-1)/chunk)
	if q == l.turns.cur {
		most = min(most, (l.left+chunk-1)/chunk)
	}
	p := s.at(id).part
	m := &s.partMessage
	s.describePart(m, t, &p)
	run := s.wire.run(id, m)
	n := 0
	for size := b.headroom + run.Size(); n < most && b.fits(size+s.spare()) && s.unacked.Limit(now, s.frameMax) == ack.Open; n++ {
		run.Next(m)
		p.index++
		p.offset += uint32(chunk)
		buf, rest := b.frame(s.partHead(), s.bytesOf(t, &p), t, s.spare())
		run.Put(buf[b.headroom:])
		id := s.unacked.Track(now, run.Size())
		s.note(s.unacked, id, t, &p, size)
		if s.profile.NoAcks {
			s.unheard = append(s.unheard, id)
		}
		s.put(b, buf, rest, false)
	}
	s.tookParts(q, n)
}

// packMessages makes a frame of what is next.
func (s *sending) packMessages(b *batch, now ack.Instant) (buf []byte, id uint32) {
	buf = s.buffer()
	var w frame.Writer
	w.InitAfter(buf[b.headroom:b.headroom+s.frameMax], s.header)
	first, n := s.fill(now, &w)
	if n == 0 {
		panic("BUG: a frame without messages")
	}
	buf = buf[:b.headroom+w.Len()]
	id = s.unacked.Track(now, w.Len())
	s.keep(s.unacked, id, buf, first, n)
	return buf, id
}

// packProbe sends an empty frame under a new id, which an FPGA acknowledges
// and so says what else it has (quirk F2). It may lie beyond the window: there
// it is dropped without a trace, and sent again later.
func (s *sending) packProbe(b *batch, now ack.Instant) {
	if !s.sender.MayProbe() {
		return
	}
	buf := s.buffer()[:b.headroom+probeLength]
	clear(buf)
	q := s.unacked.Track(now, probeLength)
	s.keep(s.unacked, q, buf, nil, 0)
	var h frame.Header
	s.label(&h)
	h.Seq = frame.Seq(q)
	h.Put(buf[b.headroom:])
	buf[b.headroom+probeOwnID] = byte(q)
	buf[b.headroom+probeOwnID+1] = byte(q >> 8)
	s.counters.Probes++
	s.put(b, buf, nil, false)
}
