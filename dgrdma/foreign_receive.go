package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// foreignReceiving is what is received from a peer of another kind. It belongs to the holder of the receive lock.
type foreignReceiving struct {
	*receiving
	v107 foreign.Receiver
}

var _ receivingKind = (*foreignReceiving)(nil)

// forget implements receivingKind.
func (o *foreignReceiving) forget() { o.v107.Forget() }

func (o *foreignReceiving) introduced() bool { return true }

// dropBatch implements receivingKind.
func (o *foreignReceiving) dropBatch() { o.v107.DropBatch() }

// receive implements receivingKind.
func (o *foreignReceiving) receive(now ack.Instant, f *frame.Frame) (why Reason, applied bool) {
	o.begin(now)
	o.livedAt = now // it names no life, so whatever comes is all that it has to show
	if !f.HasMessages() {
		if o.down.Load() {
			return o.drop(RefusedDown), false
		}
		o.v107.Alone(now, f)
		o.up()
		return RefusedNone, false
	}
	d := o.scratch
	d.cursor.Begin(f)
	d.pendingWrites = d.pendingWrites[:0]
	m := &d.nextWrite().msg
	d.cursor.Into(m)
	switch o.v107.Judge(now, f, m, o.down.Load()) {
	case foreign.Down:
		return o.drop(RefusedDown), false
	case foreign.Copy:
		o.counters.Duplicates++
		o.v107.Again(now, f)
		return RefusedNone, false
	case foreign.Restart:
		o.events.event(Event{Kind: PeerRestarted, Reason: RefusedForeign, Txn: m.Txn})
		fallthrough
	case foreign.OtherLife:
		return o.refused(RefusedForeign, m.Txn, nil), false
	}
	if why, txn, err := o.check(); why != RefusedNone {
		o.v107.Refused(now, f)
		return o.refused(why, txn, err), false
	}
	o.applyChecked(f.Seq)
	o.v107.Applied(now, f)
	o.up()
	return RefusedNone, true
}

// follow implements receivingKind: it applies the frames that go on where f ended. They are in the middle of a transaction, and their headers are
// as the one before lets expect: so what receive asks of each frame is answered already, and what it notes is
// noted once for all of them. Whatever is not so is left to receive: the end of a transaction,
// a frame of another length, one that acknowledges something or came already, what the memory
// does not take.
func (o *foreignReceiving) follow(now ack.Instant, f *frame.Frame, rest []transport.Datagram, from *transport.Addr) (n int) {
	d := o.scratch
	m := &d.pendingWrites[0].msg
	in := o.open.Find(m.Txn)
	if len(d.pendingWrites) > 1 || in == nil || m.Len == 0 || o.v107.Newest() != f.Seq {
		return 0
	}
	h := f.Header
	h.AckCount, h.Flags = 0, frame.FlagMessages
	if d.checksum {
		h.Flags |= frame.FlagChecksum
	}
	d.run.Begin(&h, m)
	if n = o.followRun(&d.run, m, rest, from, min(foreign.Unmarked(m), int(m.Count-in.Got)-1)); n > 0 {
		o.countFollowed(in, n)
		o.v107.AppliedRun(now, n, &d.before)
	}
	return n
}
