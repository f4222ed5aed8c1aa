package dgrdma

// Close ends the connection: everything pending fails with ErrClosed, and the
// peer's frames are refused from now on. A peer of our own kind is told, and not waited for:
// its connection fails with [ErrPeerClosed]. The endpoint stays. Close does not
// wait for callbacks that run, and may be called from Done.
func (c *Conn) Close() error {
	if c.end() {
		c.ep.sched.AfterBatch(c.disconnect)
	}
	return nil
}

// disconnect has the peer told that the connection is closed.
func (c *Conn) disconnect() {
	c.mu.Lock()
	c.tx.disconnect()
	c.mu.Unlock()
	c.ep.sched.Work(false)
}

// end is Close, of which the peer is not told. It reports whether the peer is to be: the connection
// had not ended before, or was about to begin again.
func (c *Conn) end() (tells bool) {
	tells = c.stop()
	c.ep.forget(c)
	return tells
}

// stop is end of a connection that stays in the table.
func (c *Conn) stop() (tells bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tells = c.tx.sendsDisconnect()
	c.tx.closed = true
	var fin finished
	c.fail(c.ep.now(), &fin, ErrClosed)
	// Before anybody else sees that nothing is posted any more: Endpoint.Close would
	// return without these.
	c.ep.finish(&fin)
	return tells
}
