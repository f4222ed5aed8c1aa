package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
	"github.com/dgrdma/dgrdma/frame"
)

// foreignSending is what the sending half knows of a peer of another kind. Guarded by the
// connection's mutex.
type foreignSending struct {
	*sending
	proof proof
	gap   gap
}

var _ sendingKind = (*foreignSending)(nil)

func (o *foreignSending) first(random ack.Wide) ack.Wide { return o.profile.begin(random) }

// resume implements sendingKind.
func (o *foreignSending) resume(next ack.Wide, asked frame.Seq) ack.Wide {
	switch {
	case asked != 0:
		return ack.Wide(asked)
	case o.profile.FirstFrame != 0:
		return ack.Wide(o.profile.FirstFrame)
	}
	return next
}

// renumbered implements sendingKind.
func (o *foreignSending) renumbered(first frame.Seq) {
	o.proof = proof{from: first}
	o.ready, o.proven = true, !o.profile.Cumulative || o.profile.FirstFrame == 0
}

// begin implements sendingKind.
func (o *foreignSending) begin(ack.Instant) {
	if o.nextTxn == 0 {
		o.nextTxn = o.cfg.Entropy()
	}
}

func (o *foreignSending) hurry(ack.Instant) {}
func (o *foreignSending) keyed(ack.Instant) {}

// serves implements sendingKind: whatever such a peer is, is taken for memory, into which
// a letter would be written.
func (o *foreignSending) serves(name frame.ServiceName, letter bool) error {
	if letter {
		return &ServiceError{Want: name.String(), Have: []string{MemoryService}}
	}
	return nil
}

func (o *foreignSending) base(frame.ServiceName) uint32 { return 0 }

func (o *foreignSending) retell(ack.Instant) bool { return false }

func (o *foreignSending) goodbye(*batch, ack.Instant) {}

func (o *foreignSending) offering() bool { return false }

func (o *foreignSending) introduce(*batch, ack.Instant) (full bool) { return false }

func (o *foreignSending) stamp(buf []byte, _, _ frame.Seq) []byte { return buf }

func (o *foreignSending) lives() (mine, theirs incarnation) { return unknown, unknown }

// next implements sendingKind.
func (o *foreignSending) next(ack.Instant) (send bool, at ack.Instant) {
	at = sched.Never
	if t, armed := o.gap.deadline(); armed {
		at = t
	}
	if o.proof.doubted {
		at = min(at, o.proof.since.Add(doubtFor))
	}
	return false, at
}

// overdue implements sendingKind.
func (o *foreignSending) overdue(now ack.Instant) (missed int, why error) {
	missed = o.gap.expire(now)
	if o.proof.doubted && now >= o.proof.since.Add(doubtFor) {
		why = o.peerError("reading its first acknowledgement", ErrStaleCard)
	}
	return missed, why
}
