package dgrdma

// passRoom passes the token of the queue's room on: much may have become free with one.
func (c *Conn) passRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plain.queued.Len() < c.cfg.Queue {
		c.tx.roomMade()
	}
}

// drain returns a channel that is closed when nothing is posted any more, or nil if
// nothing is.
func (s *sending) drain() <-chan struct{} {
	if s.pending() && s.drained == nil {
		s.drained = make(chan struct{})
	}
	return s.drained
}

func (s *sending) pending() bool { return s.posted.Len() > 0 || s.letters > 0 }

// roomMade tells goroutines that wait for the queue.
func (s *sending) roomMade() {
	select {
	case s.room <- struct{}{}:
	default:
	}
	if s.drained != nil && !s.pending() {
		close(s.drained)
		s.drained = nil
	}
}
