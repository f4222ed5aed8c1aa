package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
)

// foreignPeer is a connection to a peer without sessions: see package foreign. What is known of
// such a peer stands in its profile.
type foreignPeer struct {
	wire    *v107Wire
	tx      foreignSending
	rx      foreignReceiving
	scratch *[]frame.Seq // belongs to the holder of the receive lock
}

func newForeignPeer(tx *sending, rx *receiving, e *Endpoint) *foreignPeer {
	o := &foreignPeer{wire: tx.speakV107(true), scratch: &e.scratch}
	o.tx = foreignSending{tx, o.wire}
	o.rx.receiving = rx
	o.rx.v107.Init(&rx.profile, &rx.open)
	tx.kind, rx.kind, rx.ledger = &o.tx, &o.rx, &o.rx.v107.Ledger
	tx.posted.Strict = true
	return o
}

func (o *foreignPeer) isPeer() bool { return true }

// gone implements kind: such a peer never says so.
func (o *foreignPeer) gone() error { return nil }

// exchange implements kind.
func (o *foreignPeer) exchange(now ack.Instant) (missed int) {
	missed = foreign.Exchange(now, &o.wire.v107, &o.rx.v107)
	o.tx.proven = o.wire.v107.Proven()
	return missed
}

// acknowledge implements kind.
func (o *foreignPeer) acknowledge(now ack.Instant, fin *finished) {
	tx, acks := o.wire, o.rx.v107.Acks()
	if len(acks) == 0 {
		return
	}
	before := tx.posted.Len()
	flight := tx.v107.Flight()
	for _, run := range acks {
		acked, ok := flight.AppendAcked((*o.scratch)[:0], now, run)
		if !ok {
			o.rx.counters.Refused[RefusedAckOfUnsent]++
		}
		tx.noteRoundTrip()
		for _, q := range acked {
			tx.settled(now, uint32(flight.Wide(q)), fin)
		}
		tx.counters.AcksReceived += uint64(len(acked))
		*o.scratch = acked
	}
	flight.EndBatch(now)
	if tx.posted.Len() != before {
		tx.roomMade()
	}
}

// scheduleAck implements kind.
func (o *foreignPeer) scheduleAck(now ack.Instant) {
	foreign.ScheduleAck(now, &o.wire.v107, &o.rx.v107, o.tx.quick)
}
