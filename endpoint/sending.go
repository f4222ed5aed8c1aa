package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
	"github.com/dgrdma/dgrdma/frame"
)

const (
	// probeLength is the least Ethernet payload. Shorter frames are padded by
	// the link, and an FPGA reads that padding as another header (quirk F3).
	probeLength = 46
	probeOwnID  = 20 // where that header has its id: ours is known there, and refused
	smallLength = 48 // room for a hello, an acknowledgement or a probe
)

// pack adds what the connection has to send to the batch. It reports whether
// the batch became full before everything was in.
func (c *Conn) pack(b *batch, now ack.Instant) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.packRecall(b, now)
	}
	// Before the frames leave, so that no acknowledgement seems to be of unsent ones.
	defer func() { c.next.Store(uint32(c.sender.NextWide())) }()
	c.releaseSent()
	if c.profile.Session {
		if b.full() {
			return true
		}
		c.packHello(b, now)
	}
	c.blocked = false
	if c.ready() {
		for {
			if b.full() {
				return true
			}
			if !c.packLost(b, now) && !c.packNew(b, now) {
				break
			}
		}
		if c.probe {
			c.probe = false
			c.packProbe(b, now)
		}
	}
	for {
		if at, armed := c.due.Deadline(); !armed || at > now {
			break
		}
		if b.full() {
			return true
		}
		if !c.packAck(b, now) {
			break
		}
	}
	c.arm(now)
	return false
}

// packLost sends a lost frame again: same id, same messages, acknowledgements
// as they are now (DGRDMA-026, DGRDMA-031).
func (c *Conn) packLost(b *batch, now ack.Instant) bool {
	q, ok := c.sender.NextLost(now)
	if !ok {
		return false
	}
	c.sender.Resend(now, q)
	o := &c.out[int(q)&(len(c.out)-1)]
	var run ack.Range
	if !c.profile.FreshAcks || c.mute {
		// A peer that overlooks it in a frame that it knows gets it in a new one,
		// unless we have no id for one. It does not know all of these; and if it is of
		// our kind, and as mute, this is the only way out (A16).
		run, _ = c.due.Next()
	}
	buf := o.buf()
	if !c.profile.Probe || o.n > 0 {
		frame.PutAck(buf[b.headroom:], run.Start, run.Count)
	}
	if run.Count > 0 {
		c.counters.AcksCarried++
	}
	if c.sender.Timeouts() > 0 {
		c.counters.RetransmitsTimed++
	} else {
		c.counters.RetransmitsFast++
	}
	if t := c.ep.cfg.Trace; t != nil && t.FrameLost != nil {
		t.FrameLost(c.Name(), q, c.sender.Timeouts() > 0)
	}
	b.add(c, buf, true)
	return true
}

// packNew makes a frame of what is queued.
func (c *Conn) packNew(b *batch, now ack.Instant) bool {
	t := c.posted.unpacked
	if t == nil || c.sender.Lost() > 0 {
		return false
	}
	switch c.sender.Limit(now, c.frameMax) {
	case ack.WindowFull:
		c.blocked = true
		c.counters.WindowFull++
		return false
	case ack.Congested:
		c.blocked = true
		c.counters.Congested++
		return false
	case ack.Paced:
		return false
	}
	if !t.begun && !c.mayOpen(t) || c.unproven() {
		c.blocked = true
		return false
	}
	if c.waitsForCompany(t, now) {
		return false
	}
	buf := c.buffer()
	length, n := c.fillWhole(buf[b.headroom:], t), 1
	first := t
	if length == 0 {
		var w frame.Writer
		w.Init(buf[b.headroom : b.headroom+c.frameMax])
		if first, n = c.fill(now, &w); n == 0 {
			panic("BUG: a frame without messages")
		}
		length = w.Len()
	}
	buf = buf[:b.headroom+length]
	q := c.sender.Track(now, length)
	c.keep(q, buf, first, n)
	run, ok := c.due.Next()
	h := frame.Header{
		Dst: c.dst(), Src: c.peer.As, Seq: q, AckStart: run.Start, AckCount: run.Count, Flags: frame.FlagMessages,
	}
	h.Put(buf[b.headroom:])
	if ok {
		c.counters.AcksCarried++
	}
	if ok || now < c.aloneAt.Add(c.profile.AckDelay) {
		c.quick = false // there is company
	}
	if c.profile.NoAcks {
		b.settle = append(b.settle, settled{c, q})
	}
	b.add(c, buf, false)
	return true
}

// waitsForCompany reports whether a small transaction is held back for others.
func (c *Conn) waitsForCompany(t *Transaction, now ack.Instant) bool {
	if c.ep.cfg.Coalesce == 0 || t.begun || now >= c.holding.Add(c.ep.cfg.Coalesce) {
		c.holding = now
		return false
	}
	l := c.layout()
	total := 0
	for ; t != nil; t = t.next {
		bytes, fits := l.alone(t)
		if total += bytes; !fits || total > l.full {
			return false
		}
	}
	return true
}

// follow keeps the frames where the sender's slots are.
func (c *Conn) follow() {
	if n := c.sender.Capacity(); n != len(c.out) {
		old := c.out
		c.out = make([]outFrame, n)
		if len(old) > 0 {
			// Ids without messages may have made the distance longer than old:
			// a frame is moved by its own id, which comes first, and no other.
			for q := c.sender.Oldest(); q != c.sender.Next().Add(-1); q++ {
				o := &old[int(q)&(len(old)-1)]
				c.out[int(q)&(n-1)] = *o
				*o = outFrame{}
			}
		}
	}
}

// packProbe sends an empty frame under a new id, which an FPGA acknowledges
// and so says what else it has (quirk F2). It may lie beyond the window: there
// it is dropped without a trace, and sent again later.
func (c *Conn) packProbe(b *batch, now ack.Instant) {
	if b.full() || c.sender.Next().Diff(c.sender.Oldest()) >= c.profile.Span {
		return
	}
	buf := c.buffer()[:b.headroom+probeLength]
	clear(buf)
	q := c.sender.Track(now, probeLength)
	c.keep(q, buf, nil, 0)
	h := frame.Header{Dst: c.dst(), Src: c.peer.As, Seq: q}
	h.Put(buf[b.headroom:])
	buf[b.headroom+probeOwnID] = byte(q)
	buf[b.headroom+probeOwnID+1] = byte(q >> 8)
	c.counters.Probes++
	b.add(c, buf, false)
}

// packAck sends an acknowledgement by itself.
func (c *Conn) packAck(b *batch, now ack.Instant) bool {
	if c.profile.Session && c.session.theirs == 0 {
		c.due.Init(c.profile.AckEvery, c.profile.AckDelay)
		return false
	}
	q, ok := c.sender.Alone(now)
	if !ok {
		// No id to travel under. It rides on the next frame with messages, or
		// comes again with the duplicate.
		c.counters.AcksHeld++
		c.mute = true
		c.due.Hold(now.Add(c.profile.AckDelay))
		return false
	}
	c.mute = false
	run, _ := c.due.Next()
	buf := b.small()[:b.headroom+frame.HeaderSize]
	if c.profile.Session {
		buf = buf[:len(buf)+frame.StampSize]
		s := frame.Stamp{
			Life: c.session.theirs, ID: uint32(c.sender.Wide(q)), Start: uint32(c.reached.Near(run.Start)),
		}
		s.Put(buf[b.headroom+frame.HeaderSize:])
	}
	h := frame.Header{Dst: c.dst(), Src: c.peer.As, Seq: q, AckStart: run.Start, AckCount: run.Count}
	h.Put(buf[b.headroom:])
	c.counters.AcksAlone++
	// A peer that waits for each transaction would wait for the delay each time.
	c.aloneAt, c.quick = now, c.profile.Session
	b.add(c, buf, false)
	return true
}

// arm sets when the connection needs attention next. Guarded by mu.
func (c *Conn) arm(now ack.Instant) {
	at := sched.Never
	if t, ok := c.sender.Deadline(); ok {
		at = min(at, t)
	}
	if t, ok := c.due.Deadline(); ok {
		at = min(at, t)
	}
	if c.profile.Session && c.asking(now) {
		at = min(at, c.session.askAt)
	}
	if !c.ready() {
		if c.posted.n > 0 {
			at = min(at, c.session.since.Add(c.ep.cfg.GiveUp))
		}
	} else if t := c.posted.unpacked; t != nil && !c.blocked {
		if until := c.holding.Add(c.ep.cfg.Coalesce); until > now {
			at = min(at, until) // once that has passed, something else holds us back
		}
		if next := c.sender.PacedUntil(now, c.frameMax); next > now {
			at = min(at, next)
		}
	}
	if c.ready() && c.sender.Lost() > 0 {
		if next := c.sender.PacedUntil(now, c.frameMax); next > now {
			at = min(at, next)
		}
	}
	if t, ok := c.gap.deadline(); ok {
		at = min(at, t)
	}
	if t, ok := c.proof.deadline(); ok {
		at = min(at, t)
	}
	if c.resting() {
		at = min(at, c.rested.Add(restAfter))
	}
	c.ep.sched.Arm(&c.entry, now, at)
}

// expire acts on what the passing of time asks for.
func (c *Conn) expire(now ack.Instant, fin *finished) {
	if c.profile.NeverRetransmits {
		c.giveUpMissing(now)
	}
	if why := c.overdue(now, fin); why != nil {
		c.ep.event(Event{Kind: PeerDown, Conn: c, Peer: c.Name(), Err: why})
	}
}

// overdue does so, and returns why the peer is given up, if it is.
func (c *Conn) overdue(now ack.Instant, fin *finished) (why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting() && now >= c.rested.Add(restAfter) {
		c.rest()
	}
	if c.err == nil {
		switch c.sender.Expire(now) {
		case ack.Dead:
			why = c.peerError(c.unacknowledged(), ErrPeerDown)
		case ack.Probe:
			c.probe = c.profile.Probe
		}
		if at, doubted := c.proof.deadline(); doubted && now >= at && c.unproven() {
			why = c.peerError("reading its first acknowledgement", ErrStaleCard)
		}
		s := &c.session
		if c.profile.Session && s.theirs == 0 && c.posted.n > 0 && now.Sub(s.since) >= c.ep.cfg.GiveUp {
			why = c.peerError("introducing ourselves (a peer of another kind needs its profile)", ErrPeerDown)
		}
		if why != nil {
			c.fail(now, fin, why)
		} else {
			c.queue()
		}
	}
	return why
}
