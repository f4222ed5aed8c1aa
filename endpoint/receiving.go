package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// receiving is the half of a connection that receives: which frames came, and the
// transactions that are incomplete. All of it belongs to who has the turn to receive.
type receiving struct {
	*terms
	kind   receivingKind
	ledger ledger
	desk   *desk
	events observer
	own    view // of the endpoint's memory; does not change once the peer is heard

	recv     ack.Receiver
	open     openTable
	held     holding     // for that, and for what the kind keeps
	acks     []ack.Range // what this batch acknowledged
	counters Counters
	followed int32       // resets that were followed
	told     bool        // of the peer, since the last reset: see up
	reminds  bool        // in this batch something came of who does not know how things stand, and has to be told
	touched  bool        // in the endpoint's list for this batch
	departs  bool        // it was said that the peer is gone, or never was there: see gone
	lastAt   ack.Instant // when the last frame came
	livedAt  ack.Instant // when the peer last showed that it is there, in the way of its kind
}

// observer is told what happens to the peer.
type observer interface{ event(Event) }

// desk is where the frame at hand is looked at. It belongs to who has the turn to
// receive.
type desk struct {
	frame      frame.Frame // not on the stack: what a trace or a memory is shown, escapes
	cursor     frame.Cursor
	placements []placement
	following
	checksum bool   // the frame at hand had one, which was right
	length   int    // of its datagram
	looked   uint32 // counts the frames that admit looked at
	pool     pool
}

// room returns room for another placement. Those before it may move.
func (d *desk) room() *placement {
	n := len(d.placements)
	if n == cap(d.placements) {
		d.placements = append(d.placements, placement{})
	}
	d.placements = d.placements[:n+1]
	return &d.placements[n]
}

// mostLeft is how many incomplete transactions a peer may have that leaves some for good:
// they are only in the way, and looked at after each batch.
const mostLeft = 256

func (r *receiving) init(t *terms, d *desk, o observer) {
	*r = receiving{terms: t, desk: d, events: o}
	p := &r.profile
	r.recv.Init(ack.ReceiverConfig{
		History: p.History, Repeat: p.Acks == AckRepeat, SplitAtWrap: p.SplitAcks, Tagged: p.Tagged, Ahead: p.Ahead,
	})
	r.held.pool = &d.pool
	r.open.held = &r.held
	r.open.limit = r.cfg.OpenIncoming
	if p.NeverRetransmits || p.OverCounts {
		r.open.limit = min(r.open.limit, mostLeft)
	}
}

// look takes the peer's view of the memory. Connections that are made and not used
// have none.
func (r *receiving) look(m Memory, c *Conn) {
	if each, ok := m.(PerConn); ok {
		if m = each.For(c); m == nil {
			m = noMemory{}
		}
	}
	r.own = viewOf(m)
}

// view is memory as a peer sees it.
type view struct {
	Memory
	placed Placed // if it wants to know; or nil
}

func viewOf(m Memory) view {
	placed, _ := m.(Placed)
	return view{m, placed}
}

// clear forgets the peer.
func (r *receiving) clear() {
	r.recv.Reset()
	r.release()
	r.kind.forget()
	r.acks = r.acks[:0]
	r.told, r.reminds = false, false
}

// letGo gives back what is kept for a connection that failed or was reset, unless it
// began anew since.
func (r *receiving) letGo() {
	if r.down.Load() || r.resets.Load() != r.followed {
		r.release()
	}
}

// release gives back what is kept for incomplete transactions.
func (r *receiving) release() {
	r.open.reset()
	r.ledger.release()
}

// receive acts on a frame of this peer, and reports whether it was applied.
func (r *receiving) receive(now ack.Instant, f *frame.Frame) (why Reason, applied bool) {
	r.counters.FramesReceived++
	r.lastAt = now
	if n := r.resets.Load(); n != r.followed {
		r.followed = n
		r.clear()
	}
	if !f.HasMessages() {
		// Whatever its id, it is never acknowledged (DGRDMA-024): that would not end.
		return r.kind.alone(now, f), false
	}
	d := r.desk
	d.cursor.Begin(f)
	d.placements = d.placements[:0]
	m := &d.room().msg
	d.cursor.Into(m)
	first := m.Txn
	switch kin, why := r.kind.judge(now, f, m); kin {
	case settled:
		return why, false
	case sameAgain:
		return r.again(now, f, first), false
	}
	tag := tagOf(m)
	switch why, txn, err := r.admit(); why {
	case RefusedNone:
	case RefusedStale, RefusedForeign:
		r.reminds = true
		return r.drop(why), false
	default:
		r.kind.acksOf(f)
		return r.refused(why, txn, err), false
	}
	r.place(f.Seq)
	r.recv.Accept(f.Seq, tag)
	r.kind.took(now, f, first)
	r.up()
	return RefusedNone, true
}

// check returns what the id of a frame with messages says, or why it is refused at once.
func (r *receiving) check(q frame.Seq, txn uint32) (ack.Verdict, Reason) {
	if r.down.Load() {
		return 0, r.drop(RefusedDown)
	}
	verdict := r.recv.Check(q)
	if verdict == ack.Far {
		// Not acknowledged either: if it is true, it comes again, or the next one
		// is believed.
		r.recv.Sight(q)
		return verdict, r.refused(RefusedForeign, txn, nil)
	}
	return verdict, RefusedNone
}

// up reports a peer that was silent so far.
func (r *receiving) up() {
	if !r.told {
		r.told = true
		r.events.event(Event{Kind: PeerUp})
	}
}

// again acts on a frame that was applied before: its acknowledgement may be
// lost, and its own acknowledgements count (DGRDMA-028, DGRDMA-032).
func (r *receiving) again(now ack.Instant, f *frame.Frame, txn uint32) Reason {
	r.counters.Duplicates++
	r.kind.acksOf(f)
	if r.kind.copied(now, f.Seq, txn) {
		r.recv.Again(f.Seq)
	}
	return RefusedNone
}

func (r *receiving) drop(why Reason) Reason {
	r.counters.Refused[why]++
	return why
}

// refused drops a frame and says so.
func (r *receiving) refused(why Reason, txn uint32, err error) Reason {
	r.drop(why)
	r.events.event(Event{Kind: FrameRefused, Reason: why, Txn: txn, Err: err})
	return why
}
