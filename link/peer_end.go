package link

import "github.com/dgrdma/dgrdma/dgrdma"

// fail ends all links but those of one life: nothing can come from the others any more. Pending dials
// of lives that are over are dropped.
func (p *peer) fail(err error, but uint32) {
	for _, l := range p.all() {
		if l.life != but {
			l.fail(err)
			l.setPeerGone()
		}
	}
	p.forgetEnded(but)
	p.dropStale()
}

// everyLife is no life of a connection: fail then ends the links of all lives.
const everyLife = 0

// Event implements [dgrdma.Handler]: it ends the links of peers that are gone.
func (p *peer) Event(ev dgrdma.Event) {
	switch {
	case ev.Kind == dgrdma.PeerDown && p.conn.Err() == nil: // another goroutine heard before, and began a new life
		p.fail(ev.Err, p.conn.Life())
	case ev.Kind == dgrdma.PeerDown:
		if p.host.ownsEndpoint {
			// Writes of the peer that are still in flight must not arrive.
			p.conn.Close()
		}
		p.fail(ev.Err, everyLife)
	case ev.Kind == dgrdma.PeerRestarted: // or only seems to be: then no links are of a life before
		p.fail(&dgrdma.PeerError{ID: ev.Peer.ID, Addr: ev.Peer.Addr, Op: "link", Err: dgrdma.ErrPeerRestarted}, p.conn.Life())
	}
}

// disconnect tells the peer of the end of all links that have nothing in flight. They stay as they
// are: what was delivered can be received.
func (p *peer) disconnect() {
	for _, l := range p.all() {
		l.fail(ErrClosed)
		l.mu.Lock()
		tell := !l.sentClose && !l.peerGone && !l.plain && l.pending.Load() == 0
		l.sentClose = l.sentClose || tell
		l.mu.Unlock()
		if tell {
			l.sendClose(hostClosed)
		}
	}
}

// hostClosed is the reason that peers are told.
const hostClosed = "the host was closed"

// abortAll ends all links early, and tells the peer.
func (p *peer) abortAll() {
	for _, l := range p.all() {
		l.endEarly(hostClosed)
	}
}

// abandonIfNoAnswer ends the connection with a peer that never wrote a letter, when no Dial waits for
// one. It may be of another kind, and would keep the memory that it was told of for ever. A link host
// whose program does not accept may be silent, too. So a peer from which frames came is first told
// that it is asked for nothing any more, and a link host answers that. On a shared endpoint others may
// need the connection.
func (p *peer) abandonIfNoAnswer() {
	if !p.host.ownsEndpoint || p.sendsLetters.Load() {
		return
	}
	heard := p.hasReceived()
	p.mu.Lock()
	leave := p.dials.Load() == 0
	for _, l := range p.links {
		leave = leave && l.closed.Load() && (!heard || l.hasNotified())
	}
	for _, e := range p.ended {
		leave = leave && (!heard || isClosed(e.notified))
	}
	p.abandoned = p.abandoned || leave
	p.mu.Unlock()
	if leave {
		p.conn.Close()
		p.fail(ErrNoAnswer, everyLife)
	}
}

// hasReceived reports whether anything came from the peer.
func (p *peer) hasReceived() bool { return p.conn.Stats().FramesReceived > 0 }
