package dgrdma

// cancel takes a transaction back of which nothing was sent.
func (c *Conn) cancel(t *Transaction) bool {
	c.mu.Lock()
	back := c.tx.cancel(t)
	c.mu.Unlock()
	if back {
		c.ep.sched.Work(false)
	}
	return back
}

// cancel takes a transaction back of which nothing was sent.
func (s *sending) cancel(t *Transaction) bool {
	if t.entry.HasBegun() || !t.entry.IsQueued() {
		return false
	}
	s.posted.Remove(&t.entry)
	t.posted = false
	s.roomMade()
	s.agenda.queue() // t may have been what kept others back, or all there was
	return true
}
