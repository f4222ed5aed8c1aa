package link

import (
	"maps"
	"slices"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// A link that this side has ended is over at once: its memory is for links of other peers. The link's
// own peer may still write there until it says that it posts nothing more, and its writes are refused.
// A link of that peer must not get the memory before: it would take such a write for its own. So until
// then the ended link says which memory that is. An honest host answers from its receive goroutine,
// whatever its program does.

// retire takes a link out of those of the peer, and keeps its memory in quarantine unless the peer has
// ended it too (through).
func (p *peer) retire(l *Link, through bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l.number)
	dialed := p.dialed[l.attempt] == l
	if dialed {
		delete(p.dialed, l.attempt)
	}
	if through {
		close(l.ended)
		return
	}
	e := &endedLink{number: l.number, attempt: l.attempt, life: l.life, dialed: dialed, memory: l.spans(), notified: l.notified, ended: l.ended}
	p.ended[e.number] = e
	if dialed {
		p.endedByAttempt[e.attempt] = e
	}
	for _, s := range e.memory {
		p.quarantine.add(s)
	}
	p.host.endedLinks.count(p.hostName(), 1)
}

// confirm forgets an ended link: its peer has answered, or is gone. Guarded by mu.
func (p *peer) confirm(e *endedLink) {
	if e == nil || p.ended[e.number] != e {
		return
	}
	delete(p.ended, e.number)
	if e.dialed {
		delete(p.endedByAttempt, e.attempt)
	}
	for _, s := range e.memory {
		p.quarantine.remove(s)
	}
	p.host.endedLinks.count(p.hostName(), -1)
	close(e.ended)
}

// confirmed notes that the peer posts nothing more for a link. It reports whether that is an ended
// link.
func (p *peer) confirmed(number uint32, attempt uint64) (known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.ended[number]
	if number == 0 {
		e = p.endedByAttempt[attempt]
	}
	if e == nil || e.attempt != attempt {
		return false
	}
	p.confirm(e)
	return true
}

// forgetEnded drops the ended links of lives that are over.
func (p *peer) forgetEnded(but uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.ended {
		if e.life != but {
			p.confirm(e)
		}
	}
}

// allEnded returns the ended links.
func (p *peer) allEnded() []*endedLink {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.ended))
}

func (p *peer) hostName() dgrdma.PeerName { return dgrdma.PeerName{Addr: p.conn.Name().Addr.Host()} }

// hasAttempt reports whether an attempt of the peer has made a link, which may be over.
func (p *peer) hasAttempt(attempt uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dialed[attempt] != nil || p.endedByAttempt[attempt] != nil
}

// countAccepted returns how many links of the peer there are that it has not ended.
func (p *peer) countAccepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.dialed) + len(p.endedByAttempt)
}
