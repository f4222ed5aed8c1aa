package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/frame"
)

// v107Wire puts frames of DG/RDMA v1.07 into batches. Guarded by the connection's mutex.
type v107Wire struct {
	*sending
	v107      foreign.Sender
	takesData bool // the peer does, from the beginning
}

// speakV107 has the frames of a connection be such.
func (s *sending) speakV107(takesData bool) *v107Wire {
	w := &v107Wire{sending: s, takesData: takesData}
	w.v107.Init(&s.terms.profile, s.terms.peer.As, s.terms.peer.ID, foreign.Timing{MaxRTO: s.mostTimeout(), GiveUp: s.terms.cfg.GiveUp})
	s.wire, s.unacked = w, w.v107.Flight()
	s.inFlight.Follow(s.unacked)
	return w
}

// start implements wire.
func (w *v107Wire) start(now ack.Instant) {
	random := uint32(0)
	if w.v107.DrawsFirst() {
		random = w.terms.cfg.Entropy()
	}
	w.v107.Start(now, random, w.ctl)
	w.renumbered()
}

func (w *v107Wire) forget(now ack.Instant) {
	w.v107.Forget(now, w.ctl)
	w.renumbered()
}

// resume implements wire.
func (w *v107Wire) resume(now ack.Instant, asked frame.Seq) {
	w.v107.Resume(now, asked, w.ctl)
	w.renumbered()
}

// renumbered follows that ids begin again.
func (w *v107Wire) renumbered() {
	w.unheard = w.unheard[:0]
	w.ready, w.proven = w.takesData, w.v107.Proven()
}

// head implements wire.
func (w *v107Wire) head(b []byte, id uint32, copied uint8) (carried bool) {
	return w.v107.Head(b, id, copied)
}

// headAgain implements wire.
func (w *v107Wire) headAgain(b []byte, _ uint32, _ uint8) (carried bool) {
	return w.v107.HeadAgain(b)
}

// run implements wire.
func (w *v107Wire) run(id uint32, m *frame.Message) frameRun { return w.v107.Run(id, m) }

// ackAt implements wire.
func (w *v107Wire) ackAt() (at ack.Instant, owed bool) { return w.v107.AckAt() }

// buildAck implements wire.
func (w *v107Wire) buildAck(b *outgoing.Batch, now ack.Instant) (sent bool) {
	id, ok := w.v107.AckID(now)
	if !ok {
		w.counters.AcksHeld++
		return false
	}
	buf := b.Small()[:b.Headroom()+frame.HeaderSize]
	w.v107.PutAck(buf[b.Headroom():], id)
	w.counters.AcksAlone++
	w.aloneAt = now
	w.put(b, buf, nil, false)
	return true
}

// buildProbe implements wire.
func (w *v107Wire) buildProbe(b *outgoing.Batch, now ack.Instant) {
	if !w.v107.MayProbe() {
		return
	}
	buf := w.inFlight.Buffer()[:b.Headroom()+foreign.ProbeSize]
	id := w.unacked.Track(now, foreign.ProbeSize)
	w.inFlight.Keep(id, buf, nil, 0)
	w.v107.PutProbe(buf[b.Headroom():], id)
	w.counters.Probes++
	w.put(b, buf, nil, false)
}

// settle implements wire.
func (w *v107Wire) settle(now ack.Instant, id uint32) bool { return w.v107.Settle(now, id) }
