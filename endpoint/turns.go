package endpoint

import (
	"errors"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// endBatch applies what a batch of datagrams said, once per connection.
func (e *Endpoint) endBatch(now ack.Instant) {
	fin := &e.heardDone
	defer e.finish(fin) // what is left, if a callback does not return
	for i, c := range e.touched {
		c.rx.touched = false
		e.touched[i] = nil
		if c.rx.open.len() > 0 {
			c.rx.ledger.sweep()
		}
		c.report(c.endBatch(now, fin))
		if c.rx.departs {
			c.rx.departs = false
			e.tell(fin) // what it acknowledged is done before it is gone
			c.report(c.parted(now, fin))
		}
	}
	e.touched = e.touched[:0]
	if e.vault != nil {
		e.vault.count(&e.strangers)
	}
	if e.strangers != (Counters{}) {
		e.mu.Lock()
		e.gone.Add(&e.strangers)
		e.mu.Unlock()
		e.strangers = Counters{}
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
	n.missed = c.kind.exchange(now)
	rx.counters.FramesMissed += uint64(n.missed)
	if tx.err == nil {
		c.kind.acknowledge(now, fin)
	}
	if tx.err == nil || tx.closed { // who closes it says goodbye behind this
		c.kind.owe(now)
	}
	rx.kind.dropBatch()
	tx.heard.counters = rx.counters
	tx.heard.open, tx.heard.held = rx.open.len(), rx.held.bytes
	tx.wake(now)
	return n
}

// parted ends the connection to a peer that said in this batch that it is gone.
func (c *Conn) parted(now ack.Instant, fin *finished) (n news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.why = c.kind.gone(); n.why != nil {
		c.giveUp(now, fin, n.why)
	}
	c.tx.wake(now)
	return n
}

// pack adds what the connection has to send to the batch, and reports whether the batch
// became full before.
func (c *Conn) pack(b *batch, now ack.Instant) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	more = c.tx.pack(b, now)
	if len(c.tx.unheard) > 0 {
		c.ep.settle = append(c.ep.settle, c)
	}
	return more
}

// settleSent finishes what was sent to peers that never acknowledge.
func (e *Endpoint) settleSent() {
	var fin finished
	defer e.finish(&fin)
	now := e.now()
	for _, c := range e.settle {
		c.settleSent(now, &fin)
	}
	clear(e.settle)
	e.settle = e.settle[:0]
}

func (c *Conn) settleSent(now ack.Instant, fin *finished) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx.sent(now, fin)
	c.tx.wake(now)
}

// deaf adds to why a peer is given up that nobody has listened to it.
func (e *Endpoint) deaf(now ack.Instant, why error) error {
	var p *PeerError
	if held := e.heldUp(now, e.cfg.GiveUp/2); held != "" && errors.As(why, &p) {
		p.Op += ", " + held
		p.Err = ErrPeerDown // who did not listen cannot say that it never answered
	}
	return why
}

// heldUp says that a callback has held up who receives for that long, as one does that waits for
// an answer, or is empty.
func (e *Endpoint) heldUp(now ack.Instant, least time.Duration) string {
	since := ack.Instant(e.applying.Load())
	if since == 0 || now.Sub(since) < least {
		return ""
	}
	return fmt.Sprintf("while a callback has not returned for %v and nothing was received"+
		" (Write, and what else waits, does not end in a callback: Post does)", now.Sub(since).Round(time.Millisecond))
}

// expire acts on what the passing of time asks for.
func (c *Conn) expire(now ack.Instant, fin *finished) {
	c.report(c.overdue(now, fin))
}

// news is what is found under the lock of a connection, and told without.
type news struct {
	missed int   // frames of the peer that are given up
	size   int   // of frames, if they are shorter from now on
	why    error // the peer is given up, if it is
}

// report tells everybody.
func (c *Conn) report(n news) {
	if n.missed > 0 {
		c.event(Event{Kind: FramesMissed, Frames: n.missed})
	}
	if n.size > 0 {
		c.event(Event{Kind: FramesShortened, Size: n.size})
	}
	if n.why != nil {
		c.event(Event{Kind: PeerDown, Err: n.why})
		c.told()
	}
}

// told lets the peer come back that was given up, of which everybody has heard by now. Who
// heard that it is back before would take that for what is over.
func (c *Conn) told() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx.reporting = false
	c.down.Store(c.tx.err != nil)
}

// giveUp ends the connection to a peer that is gone, of which who calls it tells everybody.
// Guarded by mu.
func (c *Conn) giveUp(now ack.Instant, fin *finished, why error) {
	c.fail(now, fin, why)
	c.tx.reporting = true
}

func (c *Conn) overdue(now ack.Instant, fin *finished) (n news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.missed, n.why = c.tx.overdue(now, c.ep.abreast.until(now))
	c.tx.counters.FramesMissed += uint64(n.missed)
	n.size = c.tx.shorten(fin)
	if n.why != nil {
		n.why = c.ep.keyless(c.key(), c.ep.deaf(now, n.why))
		c.giveUp(now, fin, n.why)
	} else {
		c.tx.wake(now)
	}
	return n
}
