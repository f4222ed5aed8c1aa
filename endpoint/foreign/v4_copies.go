package foreign

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// firstIDs are those by which a new life is suspected: an outage in the middle of a
// life is not.
const firstIDs = 128

func isFirst(q frame.Seq) bool { return q >= 1 && q <= firstIDs }

// arrival is what was received last under an id.
type arrival struct {
	at  ack.Instant
	txn uint32
	seq frame.Seq
}

// arrivals is a table of them by id: more than any such peer keeps ids for.
type arrivals []arrival

func (a *arrivals) note(now ack.Instant, q frame.Seq, txn uint32) {
	if *a == nil {
		*a = make([]arrival, 256)
	}
	(*a)[int(q)%len(*a)] = arrival{now, txn, q}
}

// last returns what came under q, if that is not too long ago.
func (a arrivals) last(q frame.Seq) (arrival, bool) {
	if a == nil {
		return arrival{}, false
	}
	l := a[int(q)%len(a)]
	return l, l.seq == q
}

// copyDelay is how long after a frame its copy is a retransmission, and not the
// network's doing, for peers that a second acknowledgement harms (quirk D2-4).
const copyDelay = 100 * time.Millisecond

// copied notes a frame that came again, and reports whether it is to be acknowledged
// again.
func (r *Receiver) copied(now ack.Instant, q frame.Seq, txn uint32) bool {
	before, known := r.arrivals.last(q)
	r.arrivals.note(now, q, txn)
	if r.profile.Acks == AckIfResent && known && now.Sub(before.at) < copyDelay {
		return false
	}
	r.resent = true
	return true
}

// tagOf names a frame by its first message: a retransmission has the same tag,
// another frame under the same id almost never, not even if a peer that starts
// again with the same ids sends the like to other places.
func tagOf(m *frame.Message) uint16 {
	const k1, k2, k3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB // as in splitmix64
	h := (uint64(m.Txn)<<32 | uint64(m.Addr)) * k1
	h = (h ^ h>>32 ^ uint64(m.CompletionAddr)<<32 ^ uint64(m.CompletionValue)) * k2
	h = (h ^ h>>32 ^ uint64(m.Index)<<32 ^ uint64(m.Count)<<16 ^ uint64(m.Len)) * k3
	return uint16(h >> 48)
}
