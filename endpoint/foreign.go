package endpoint

import "github.com/dgrdma/dgrdma/ack"

// foreign is a connection to a peer that does not introduce its lives. What is known of
// it stands in its profile.
type foreign struct {
	v107Halves
	tx foreignSending
	rx foreignReceiving
}

func newForeign(tx *sending, rx *receiving, e *Endpoint) *foreign {
	o := &foreign{v107Halves: tx.speakV107(rx, e), tx: foreignSending{sending: tx}}
	o.rx.receiving, o.rx.foreignLedger.receiving = rx, rx
	tx.kind, rx.kind, rx.ledger = &o.tx, &o.rx, &o.rx.foreignLedger
	tx.posted.strict = true
	return o
}

func (o *foreign) isPeer() bool { return true }

// gone implements kind: such a peer never says so.
func (o *foreign) gone() error { return nil }

// exchange implements kind.
func (o *foreign) exchange(now ack.Instant) (missed int) {
	tx, rx := &o.tx, &o.rx
	if tx.profile.Acks == AckIfResent && rx.resent {
		tx.acking = true
	}
	if tx.acking {
		tx.gap = gap{} // it sends again, if only as it was told to
	} else {
		if tx.gap.told {
			rx.gaps.forget()
		}
		missed = rx.gaps.roll(now)
		tx.gap = gap{frames: rx.gaps.older + rx.gaps.young, at: rx.gaps.since.Add(2 * missedAfter)}
	}
	if !tx.proven {
		if tx.proven = tx.proof.look(now, rx.acks, tx.sender.InFlight() > 0); !tx.proven {
			rx.acks = rx.acks[:0]
		}
	}
	return missed
}
