package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/session"
)

// scheduleAck implements kind.
func (p *sessionPeer) scheduleAck(now ack.Instant) {
	profile := &p.tx.terms.profile
	session.ScheduleAck(now, &p.tx.frames, &p.rx.frames, profile.AckDelay, profile.AckEvery, p.tx.quick)
}

// acknowledge implements kind.
func (p *sessionPeer) acknowledge(now ack.Instant, fin *finished) {
	tx, rx := &p.tx, &p.rx
	if !rx.frames.HasAcks() || !tx.ready && tx.sent.InFlight() == 0 {
		return
	}
	before := tx.posted.Len()
	for a := rx.frames.NextAck(); a != nil; a = rx.frames.NextAck() {
		p.acked(now, a, fin)
	}
	tx.sent.EndBatch(now)
	tx.noteMarks()
	tx.m.Acknowledged(tx.sent.Oldest())
	if tx.posted.Len() != before {
		tx.roomMade()
	}
}

func (p *sessionPeer) acked(now ack.Instant, a *ack.Acknowledgement, fin *finished) {
	tx, e := &p.tx, p.conn.ep
	ids, ok := tx.sent.AppendAcked(e.ackedIDs[:0], now, a)
	e.ackedIDs = ids
	if !ok {
		p.rx.counters.Refused[RefusedAckOfUnsent]++
		p.rx.departs = p.rx.departs || tx.sent.Lied()
		return
	}
	tx.noteRoundTrip()
	for _, id := range ids {
		tx.settled(now, id, fin)
	}
	tx.counters.AcksReceived += uint64(len(ids))
}

// ackAt implements wire.
func (w sessionWire) ackAt() (at ack.Instant, is bool) { return w.frames.AckAt() }

// buildAck implements wire.
func (w sessionWire) buildAck(b *outgoing.Batch, now ack.Instant) (sent bool) {
	buf := b.Small()
	n := w.frames.PutAck(buf[b.Headroom():], now, w.terms.most)
	w.counters.AcksAlone++
	w.aloneAt, w.quick = now, true
	w.put(b, buf[:b.Headroom()+n], nil, false)
	return true
}
