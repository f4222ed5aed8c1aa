package dgrdma

import "github.com/dgrdma/dgrdma/ack"

// expire acts on what the passing of time asks for.
func (c *Conn) expire(now ack.Instant, fin *finished) {
	c.report(c.overdue(now, fin))
}

func (c *Conn) overdue(now ack.Instant, fin *finished) (n news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.missed, n.why = c.tx.overdue(now, c.ep.receiveProgress.until(now))
	c.tx.counters.FramesMissed += uint64(n.missed)
	n.size = c.tx.shorten(fin)
	if n.why != nil {
		n.why = c.ep.keyless(c.key(), c.ep.addReceiverBlocked(now, n.why))
		c.giveUp(now, fin, n.why)
	} else {
		c.tx.wake(now)
	}
	return n
}
