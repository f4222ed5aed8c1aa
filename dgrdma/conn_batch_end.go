package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
)

// endBatch applies what a batch of datagrams said, once per connection.
func (e *Endpoint) endBatch(now ack.Instant) {
	fin := &e.heardDone
	defer e.finish(fin) // what is left, if a callback panics
	for i, c := range e.touched {
		c.rx.touched = false
		e.touched[i] = nil
		c.rx.endOvercounted()
		c.report(c.endBatch(now, fin))
		if c.rx.departs {
			c.rx.departs = false
			e.tell(fin) // what it acknowledged is done before it is gone
			c.report(c.ended(now, fin))
		}
	}
	e.touched = e.touched[:0]
	e.acks.Clear()
	if e.sealed != nil {
		e.countKeys(&e.unknown)
	}
	if e.unknown != (Counters{}) {
		e.mu.Lock()
		e.gone.Add(&e.unknown)
		e.mu.Unlock()
		e.unknown = Counters{}
	}
	e.tell(fin)
}

// endBatch is where the halves meet: the receiving half hands over what the peer
// acknowledged and what is to be acknowledged to it.
func (c *Conn) endBatch(now ack.Instant, fin *finished) (n news) {
	tx, rx := &c.tx, &c.rx
	c.mu.Lock()
	defer c.mu.Unlock()
	tx.heard.at, tx.heard.lived = rx.lastAt, rx.livedAt
	if c.resets.Load() != rx.followed {
		// Reset came in the middle of the batch.
		rx.kind.dropBatch()
	}
	tx.unacked.Lives(rx.livedAt)
	n.missed = c.kind.exchange(now)
	rx.counters.FramesMissed += uint64(n.missed)
	if tx.err == nil {
		c.kind.acknowledge(now, fin)
	}
	if tx.err == nil || tx.closed { // the goroutine that closes it disconnects after this
		c.kind.scheduleAck(now)
	}
	rx.kind.dropBatch()
	for _, ch := range c.channels.all() {
		ch.mail.in.tidy()
	}
	tx.heard.counters = rx.counters
	tx.heard.open, tx.heard.held = rx.open.Len(), rx.held.Bytes()
	tx.wake(now)
	return n
}

// ended ends the connection to a peer that said in this batch that it is gone.
func (c *Conn) ended(now ack.Instant, fin *finished) (n news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.why = c.kind.gone(); n.why != nil {
		c.giveUp(now, fin, n.why)
	}
	c.tx.wake(now)
	return n
}

// build adds what the connection has to send to the batch, and reports whether the batch
// became full before.
func (c *Conn) build(b *outgoing.Batch, now ack.Instant) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	more = c.tx.build(b, now)
	if len(c.tx.unheard) > 0 {
		c.ep.settle = append(c.ep.settle, c)
	}
	return more
}

// hears notes that something of a connection is in this batch.
func (e *Endpoint) hears(c *Conn) {
	if !c.rx.touched {
		c.rx.touched = true
		e.touched = append(e.touched, c)
	}
}
