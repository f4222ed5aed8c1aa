package endpoint

import "github.com/dgrdma/dgrdma/ack"

// endBatch applies what a batch of datagrams said, once per connection.
func (e *Endpoint) endBatch(now ack.Instant) {
	var fin finished
	defer e.finish(&fin) // what is left, if a callback does not return
	for i, c := range e.touched {
		c.rx.touched = false
		e.touched[i] = nil
		if c.profile.OverCounts && c.rx.open.len() > 0 {
			c.completeOverCounted()
		}
		c.endBatch(now, &fin)
		c.missedFrames(c.rx.gaps.tell())
	}
	e.touched = e.touched[:0]
	if e.strangers != (Counters{}) {
		e.mu.Lock()
		e.gone.Add(&e.strangers)
		e.mu.Unlock()
		e.strangers = Counters{}
	}
	fin.deliver()
}

func (c *Conn) endBatch(now ack.Instant, fin *finished) {
	r := &c.rx
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heardAt = r.lastAt
	if c.epoch.Load() != r.epoch {
		// Reset came in the middle of the batch.
		r.acks = r.acks[:0]
		r.recv.DropDue()
	}
	if c.profile.NeverRetransmits {
		c.countGaps(now)
	}
	if c.err == nil {
		e := c.ep
		before := c.posted.n
		if !c.proof.given && !c.proof.look(now, r.acks, c.sender.InFlight() > 0) {
			r.acks = r.acks[:0]
		}
		for _, run := range r.acks {
			acked, ok := c.sender.AppendAcked(e.scratch[:0], now, run)
			if !ok {
				r.counters.Refused[RefusedAckOfUnsent]++
			}
			if d, measured := c.sender.Measured(); measured {
				c.took().RoundTrip.note(d)
			}
			for _, q := range acked {
				c.settled(now, q, fin)
			}
			c.counters.AcksReceived += uint64(len(acked))
			e.scratch = acked
		}
		if len(r.acks) > 0 {
			c.sender.EndBatch(now)
		}
		if c.posted.n != before {
			c.rested = now
			c.roomMade()
		}
		if c.profile.Acks == AckIfResent && r.resent {
			c.acking = true
		}
		if c.acking {
			c.due.Take(now, &r.recv)
			if c.quick {
				c.due.Hold(now)
			}
		} else {
			r.recv.DropDue()
		}
		at, armed := c.due.Deadline()
		if armed && at <= now || c.ready() && (c.sender.Lost() > 0 || c.posted.unpacked != nil) {
			c.queue()
		} else {
			c.arm(now)
		}
	}
	r.acks = r.acks[:0]
	c.reached = r.recv.Newest()
	c.session.paired = c.session.paired || r.paired && r.life == c.session.theirs
	c.received = r.counters
	c.open, c.held = r.open.len(), r.held.bytes
}
