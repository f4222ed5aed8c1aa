package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// receiving is what who has the turn to receive keeps of a connection.
type receiving struct {
	recv     ack.Receiver
	late     ack.Lateness
	open     openTable
	closed   closedSet
	gaps     gaps
	held     holding // for these two
	life     uint32  // of the peer; 0: not introduced yet
	mine     uint32  // our life, to which that one speaks
	paired   bool    // and which it believes
	epoch    int32
	acks     []ack.Range // what this batch acknowledged
	counters Counters
	newest   uint32 // youngest transaction id, where ids tell age
	newestAt frame.Seq
	placed   bool        // newest is set
	heard    bool        // something valid came since the last reset
	suspect  bool        // the peer seems to have restarted, and that was reported
	lastAt   ack.Instant // when the last frame came
	touched  bool        // in the endpoint's list for this batch
	resent   bool        // the peer has sent something again
	arrivals arrivals    // where copies must be told from retransmissions, or from a new life
	accepted bool        // something was, since the last reset
	freshAt  ack.Instant // when something new came last
	doubted  doubt
}

func (r *receiving) init(c *Conn) {
	p := &c.profile
	r.recv.Init(ack.ReceiverConfig{
		History: p.History, Repeat: p.Acks == AckRepeat, SplitAtWrap: p.SplitAcks, Tagged: p.Tagged, Ahead: p.Ahead,
	})
	r.held.pool = &c.ep.pool
	r.open.held, r.closed.held = &r.held, &r.held
	r.open.limit = c.ep.cfg.OpenIncoming
	if p.NeverRetransmits || p.OverCounts {
		// What these leave open is lost for good, and only in the way: it is
		// looked at after each batch.
		r.open.limit = min(r.open.limit, 256)
	}
	r.clear()
}

func (r *receiving) clear() {
	r.recv.Reset()
	r.late = ack.Lateness{}
	r.release()
	r.acks = r.acks[:0]
	r.life, r.paired = 0, false
	r.placed, r.heard, r.suspect, r.resent, r.accepted = false, false, false, false, false
	clear(r.arrivals)
	r.gaps = gaps{}
	r.doubted = doubt{}
}

// release gives back what is kept for incomplete transactions.
func (r *receiving) release() {
	r.open.reset()
	r.closed.reset()
}

// giveBack has who receives release what is kept for a connection that
// failed or was reset. Guarded by mu.
func (c *Conn) giveBack() {
	// What is kept of nothing is not to keep the connection.
	if c.held > 0 || c.ep.sched.Batching() {
		c.ep.sched.AtBatchEnd(c.letGo)
	}
}

// letGo is release, unless the connection began anew since.
func (c *Conn) letGo() {
	if c.down.Load() || c.epoch.Load() != c.rx.epoch {
		c.rx.release()
	}
}

// begin starts a life of the peer, whose frame ids go on near at.
func (r *receiving) begin(life, mine uint32, at ack.Wide) {
	r.clear()
	r.recv.ResetAt(at)
	r.life, r.mine = life, mine
	r.heard = true // its owner tells
	r.closed.begin(life)
}

// receive acts on a frame of this peer.
func (c *Conn) receive(now ack.Instant, f *frame.Frame) Reason {
	r := &c.rx
	c.touch()
	r.counters.FramesReceived++
	r.lastAt = now
	if e := c.epoch.Load(); e != r.epoch {
		r.epoch = e
		r.clear()
	}
	if !f.HasMessages() {
		return c.alone(now, f)
	}
	cur := &c.ep.cursor
	*cur = f.Cursor()
	cur.Next()
	first := &cur.Msg
	if c.profile.Session {
		if h, ok := first.Hello(); ok {
			return c.hello(now, f, h)
		}
		if r.life == 0 {
			c.missed(now)
			return c.drop(RefusedNoSession)
		}
	}
	if c.down.Load() {
		return c.drop(RefusedDown)
	}
	tag := tagOf(first)
	verdict := r.recv.Check(f.Seq)
	switch {
	case verdict == ack.Far:
		// Not acknowledged either: if it is true, it comes again, or the next one
		// is believed.
		r.recv.Sight(f.Seq)
		return c.refused(RefusedForeign, first.Txn, nil)
	case !c.profile.Session:
		switch c.kin(now, verdict, f.Seq, tag, first) {
		case sameAgain:
			return c.again(now, f, first.Txn)
		case foreign:
			return c.suspectRestart(now, f, first)
		}
		if c.profile.NeverRetransmits {
			r.gaps.came(now, f.Seq)
		}
	case verdict != ack.Duplicate:
	case r.recv.Carried(f.Seq, tag):
		return c.again(now, f, first.Txn)
	case !r.recv.Tagged(f.Seq) && c.applied(*cur):
		// Too far back to be sure that this is not another one with the same
		// id, whose acknowledgements may be old. But that one came, too.
		r.counters.Duplicates++
		r.recv.Again(f.Seq)
		return RefusedNone
	}
	if c.profile.Session && (verdict == ack.Duplicate || verdict == ack.Old) && !r.doubted.believes(now, f.Seq, tag) {
		c.missed(now)
		return c.drop(RefusedForeign)
	}
	if why, txn, err := c.admit(cur); why != RefusedNone {
		if why == RefusedStale || why == RefusedForeign {
			c.missed(now)
			return c.drop(why)
		}
		c.acksOf(f)
		return c.refused(why, txn, err)
	}
	c.acksOf(f)
	c.place(f.Seq)
	r.recv.Accept(f.Seq, tag)
	if c.profile.remembers() {
		r.arrivals.note(now, f.Seq, first.Txn)
	}
	r.accepted, r.freshAt = true, now
	c.heard()
	return RefusedNone
}

// applied reports whether all messages from the cursor's on were applied.
func (c *Conn) applied(cur frame.Cursor) bool {
	r := &c.rx
	for more := true; more; more = cur.Next() {
		if r.closed.age(cur.Msg.Txn) == ageClosed {
			continue
		}
		in := r.open.find(cur.Msg.Txn)
		if in == nil {
			return false
		}
		if seen, _ := in.indexes.look(cur.Msg.Index); !seen {
			return false
		}
	}
	return true
}

// heard reports a peer that was silent so far.
func (c *Conn) heard() {
	if !c.rx.heard {
		c.rx.heard = true
		c.ep.event(Event{Kind: PeerUp, Conn: c, Peer: c.Name()})
	}
}

// alone acts on a frame without messages. Whatever its id, it is never
// acknowledged (DGRDMA-024): that would not end.
func (c *Conn) alone(now ack.Instant, f *frame.Frame) Reason {
	r := &c.rx
	if c.profile.Session && r.life == 0 {
		return c.drop(RefusedNoSession)
	}
	if c.down.Load() {
		return c.drop(RefusedDown)
	}
	if c.profile.Session {
		return c.stamped(now, f)
	}
	c.acksOf(f)
	if c.profile.NeverRetransmits && r.recv.Check(f.Seq) != ack.Far {
		if _, missing := r.recv.Missing(f.Seq, f.Seq); missing {
			r.gaps.came(now, f.Seq)
		}
	}
	r.recv.AckOnly(r.recv.Wide(f.Seq))
	r.freshAt = now
	c.heard()
	return RefusedNone
}

// again acts on a frame that was applied before: its acknowledgement may be
// lost, and its own acknowledgements count (DGRDMA-028, DGRDMA-032).
func (c *Conn) again(now ack.Instant, f *frame.Frame, txn uint32) Reason {
	r := &c.rx
	before, known := r.arrivals.last(f.Seq)
	if c.profile.remembers() {
		r.arrivals.note(now, f.Seq, txn)
	}
	r.counters.Duplicates++
	c.acksOf(f)
	if c.profile.Acks == AckIfResent && known && now.Sub(before.at) < copyDelay {
		return RefusedNone
	}
	r.resent = true
	r.recv.Again(f.Seq)
	return RefusedNone
}

// acksOf notes what a frame acknowledges, to be applied at the end of the batch.
func (c *Conn) acksOf(f *frame.Frame) {
	r := &c.rx
	late := c.profile.Session && r.late.Late(r.recv.Wide(f.Seq), ack.Wide(c.next.Load()))
	if f.AckCount == 0 && !c.profile.Cumulative {
		return
	}
	if c.profile.Session && !r.paired {
		return
	}
	if late {
		r.counters.Refused[RefusedAckTooOld]++
		return
	}
	r.acks = append(r.acks, ack.Range{Start: f.AckStart, Count: f.AckCount})
}

func (c *Conn) drop(why Reason) Reason {
	c.rx.counters.Refused[why]++
	return why
}

// refused drops a frame and says so.
func (c *Conn) refused(why Reason, txn uint32, err error) Reason {
	c.drop(why)
	c.ep.event(Event{Kind: FrameRefused, Conn: c, Peer: c.Name(), Reason: why, Txn: txn, Err: err})
	return why
}
