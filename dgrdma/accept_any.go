package dgrdma

// AcceptAny changes [Config.AcceptAny]: whether peers are learned from what they
// send, and may write into the memory.
func (e *Endpoint) AcceptAny(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed := e.gate.AcceptAny(on)
	if on {
		for _, c := range e.peers.all() {
			c.admitted()
		}
		e.sched.Work(false)
	}
	e.accept(changed)
}

// Welcome has peers learned from what they send that may not write into the memory,
// unless AcceptAny lets them: for services, which admit what they know. Each call with on
// is taken back by one without.
func (e *Endpoint) Welcome(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accept(e.gate.Welcome(on))
}

// accept has the transport listen to unknown sources, or not, if that changed. Guarded by mu.
func (e *Endpoint) accept(changed bool) {
	if changed && !e.closed {
		e.focus()
	}
}

// admitted lets a guest write into the memory, and tells it so.
func (c *Conn) admitted() {
	if c.guest.Swap(false) {
		c.tellServices()
	}
}
