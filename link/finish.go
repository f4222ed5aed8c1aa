package link

// Finish sends end of file behind what was sent, and does not wait: it leaves at once, or
// as soon as the consumer gives a buffer back if it has none free. Who waits for a buffer
// gets ErrClosed. Flush waits for what Finish leaves under way.
func (p *Producer) Finish() error {
	if p == nil {
		return ErrNoHalf
	}
	p.mu.Lock()
	if !p.closed.Swap(true) {
		p.forget()
		p.owesEnd.Store(p.link.failed() == nil) // else nobody would take it
	}
	p.mu.Unlock()
	p.sendEnd()
	p.waiting.Rouse()
	return nil
}

// sendEnd sends the end of file that is owed, if there is a buffer for it.
func (p *Producer) sendEnd() {
	if !p.owesEnd.Load() {
		return
	}
	p.mu.Lock()
	k := p.acquired.Load()
	fits := p.owesEnd.Load() && k-p.returned.Load() < p.wire.buffers && p.ring.take(k, 0) != nil
	if fits {
		p.endLeaves.Store(true) // before owesEnd, as who finds that false looks here next
		p.owesEnd.Store(false)  // before put, which comes here again if the link has failed
		p.acquired.Store(k + 1)
		p.put(k, PackFlag(0, 0, true)) // of an error, the link knows
		p.endLeaves.Store(false)
	}
	p.mu.Unlock()
	if fits {
		p.link.conclude()
	}
}

// Finish is Close that does not wait: what was sent arrives, and end of file behind it,
// while the host is open; nothing can be sent or received from now on. Host.Shutdown waits
// for it.
func (l *Link) Finish() error {
	l.leaving.Store(true)
	if l.Out != nil {
		l.Out.Finish()
	}
	l.fail(ErrClosed)
	l.conclude()
	return nil
}

// conclude ends a link that Finish was called of, once end of file is under way.
func (l *Link) conclude() {
	if l.leaving.Load() && (l.Out == nil || !l.Out.owesEnd.Load() && !l.Out.endLeaves.Load()) {
		l.end()
	}
}

// endsUnheard notes that nobody takes what the peer is owed any more.
func (l *Link) endsUnheard() {
	if l.Out != nil && l.Out.owesEnd.Swap(false) {
		l.Out.waiting.Rouse() // who waits in Flush
	}
	l.conclude()
}
