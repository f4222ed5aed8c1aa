package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// v107 is what is in flight, and owed, in frames of DG/RDMA v1.07: their ids have 16 bits, and each acknowledges one run of ids.
type v107 struct {
	sender  ack.Sender
	due     ack.Due
	acking  bool      // acknowledgements are sent to this peer
	mute    bool      // none can leave by itself: the span of ids is used up
	started bool      // ids have begun
	frames  frame.Run // being written
}

// speakV107 makes both halves of a connection write such frames.
func (s *sending) speakV107(rx *receiving, e *Endpoint) v107Halves {
	s.wire, s.unacked = v107Wire{s}, sequenced{&s.sender}
	return v107Halves{s, rx, &e.scratch}
}

// v107Wire is the wire of such frames.
type v107Wire struct{ *sending }

// start implements wire.
func (w v107Wire) start(now ack.Instant) {
	p := &w.profile
	first := w.sender.NextWide()
	if !w.started {
		if first = ack.Wide(p.FirstFrame); first == 0 {
			first = w.kind.first(ack.Wide(w.cfg.Entropy()))
		}
		w.started = true
	}
	w.number(now, first)
	w.due.Init(p.AckEvery, p.AckDelay)
	w.acking = p.Acks == AckRepeat || p.Acks == AckOnce
}

// number forgets all ids and begins at first.
func (s *sending) number(now ack.Instant, first ack.Wide) {
	p := &s.profile
	s.unheard = s.unheard[:0]
	s.sender.Init(now, ack.SenderConfig{
		First: first, Window: p.Window, Span: p.Span,
		MinRTO: p.MinTimeout, MaxRTO: s.mostTimeout(), MaxBetween: s.mostBetween(), AckDelay: p.PeerAckDelay, AckEvery: p.PeerAckEvery,
		GiveUp: s.cfg.GiveUp, Cumulative: p.Cumulative, OneRun: p.OneRun, FreshAlone: p.FreshAlone, SlotTable: p.SlotTable,
	}, s.ctl)
	s.kind.renumbered(first.Seq())
}

func (w v107Wire) forget(now ack.Instant) { w.number(now, w.sender.NextWide()) }

// resume implements wire.
func (w v107Wire) resume(now ack.Instant, asked frame.Seq) {
	w.number(now, w.kind.resume(w.sender.NextWide(), asked))
}

// head implements wire.
func (w v107Wire) head(b []byte, id uint32, copied uint8) (carried bool) {
	var run ack.Range
	if copied > 0 {
		run = w.dueAgain()
	} else {
		run, _ = w.due.Next()
	}
	var h frame.Header
	w.label(&h)
	h.Seq, h.AckStart, h.AckCount, h.Flags = frame.Seq(id), run.Start, run.Count, frame.FlagMessages
	h.Put(b)
	return run.Count > 0
}

// headAgain implements wire.
func (w v107Wire) headAgain(b []byte, id uint32, _ uint8) (carried bool) {
	run := w.dueAgain()
	frame.PutAck(b, run.Start, run.Count)
	return run.Count > 0
}

// dueAgain returns what a frame acknowledges that is sent again.
func (s *sending) dueAgain() (run ack.Range) {
	if !s.profile.FreshAcks || s.mute {
		// A peer that overlooks it in a frame that it knows gets it in a new one,
		// unless we have no id for one. It does not know all of these; and if it is of
		// our kind, and as mute, this is the only way out (A16).
		run, _ = s.due.Next()
	}
	return run
}

// run implements wire.
func (w v107Wire) run(id uint32, m *frame.Message) frameRun {
	h := frame.Header{Seq: frame.Seq(id), Flags: frame.FlagMessages}
	w.label(&h)
	w.frames.Begin(&h, m)
	return &w.frames
}

// ackAt implements wire.
func (w v107Wire) ackAt() (at ack.Instant, owed bool) { return w.due.Deadline() }

// packAck implements wire.
func (w v107Wire) packAck(b *batch, now ack.Instant) (sent bool) {
	q, ok := w.sender.Alone(now)
	if !ok {
		// No id to travel under. It rides on the next frame with messages, or
		// comes again with the duplicate.
		w.counters.AcksHeld++
		w.mute = true
		w.due.Hold(now.Add(max(w.profile.AckDelay, leastHold)))
		return false
	}
	w.mute = false
	run, _ := w.due.Next()
	buf := b.small()[:b.headroom+frame.HeaderSize]
	var h frame.Header
	w.label(&h)
	h.Seq, h.AckStart, h.AckCount = q, run.Start, run.Count
	h.Put(buf[b.headroom:])
	w.counters.AcksAlone++
	w.aloneAt = now
	w.put(b, w.kind.stamp(buf, q, run.Start), nil, false)
	return true
}

// v107Halves is what both halves of a connection say to each other in such frames.
type v107Halves struct {
	tx      *sending
	rx      *receiving
	scratch *[]frame.Seq // belongs to the goroutine that receives
}

// acknowledge implements kind.
func (h v107Halves) acknowledge(now ack.Instant, fin *finished) {
	tx, acks := h.tx, h.rx.acks
	if len(acks) == 0 {
		return
	}
	before := tx.posted.n
	for _, run := range acks {
		acked, ok := tx.sender.AppendAcked((*h.scratch)[:0], now, run)
		if !ok {
			h.rx.counters.Refused[RefusedAckOfUnsent]++
		}
		tx.noteRoundTrip()
		for _, q := range acked {
			tx.settled(now, uint32(tx.sender.Wide(q)), fin)
		}
		tx.counters.AcksReceived += uint64(len(acked))
		*h.scratch = acked
	}
	tx.sender.EndBatch(now)
	if tx.posted.n != before {
		tx.roomMade()
	}
}

// owe implements kind.
func (h v107Halves) owe(now ack.Instant) {
	tx := h.tx
	if tx.acking {
		tx.due.Take(now, &h.rx.recv)
	} else {
		h.rx.recv.DropDue()
	}
	if tx.quick {
		tx.due.Hold(now)
	}
}

// dropBatch implements receivingKind.
func (r *receiving) dropBatch() {
	r.acks = r.acks[:0]
	r.recv.DropDue()
}
