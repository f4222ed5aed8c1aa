package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// foreignSending is what the sending half knows of a peer of another kind. Guarded by the
// connection's mutex.
type foreignSending struct {
	*sending
	wire *v107Wire
}

var _ sendingKind = (*foreignSending)(nil)

// begin implements sendingKind.
func (o *foreignSending) begin(ack.Instant) {
	if o.nextTxn == 0 {
		o.nextTxn = o.terms.cfg.Entropy()
	}
}

func (o *foreignSending) hurry(ack.Instant)     {}
func (o *foreignSending) keyed(ack.Instant)     {}
func (o *foreignSending) failed(ack.Instant)    {}
func (o *foreignSending) connected(ack.Instant) {}

// serves implements sendingKind: whatever such a peer is, is taken for memory, into which
// a letter would be written.
func (o *foreignSending) serves(name frame.ServiceName, letter bool) error {
	if letter {
		return &ServiceError{Want: name.String(), Have: []string{MemoryService}}
	}
	return nil
}

func (o *foreignSending) base(frame.ServiceName) uint32 { return 0 }

func (o *foreignSending) tellAgain(ack.Instant) bool { return false }
func (o *foreignSending) refusal() error             { return nil }

func (o *foreignSending) buildDisconnect(*outgoing.Batch, ack.Instant) {}

func (o *foreignSending) introduce(*outgoing.Batch, ack.Instant) (full bool) { return false }

func (o *foreignSending) epochs() (mine, theirs session.Epoch) { return 0, 0 }

// next implements sendingKind.
func (o *foreignSending) next(ack.Instant) (send bool, at ack.Instant) {
	at, armed := o.wire.v107.Deadline()
	if !armed {
		at = run.Never
	}
	return false, at
}

// overdue implements sendingKind.
func (o *foreignSending) overdue(now, _ ack.Instant) (missed int, why error) {
	missed, stale := o.wire.v107.Expire(now)
	if stale {
		why = o.terms.peerError("reading its first acknowledgement", ErrStaleCard)
	}
	return missed, why
}
