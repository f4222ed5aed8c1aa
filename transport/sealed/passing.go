package sealed

import (
	"container/list"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/transport"
)

// mostPassing bounds the associations without a connection. Arbitrary: as many peers can agree on a key at once as
// agree on one within 0.2 s on a fast processor.
const mostPassing = 1024

// PerPeer is how many bytes the keys of a peer take at most, with what is kept of their handshakes.
const PerPeer = 32 << 10

// passing holds the associations without a connection: the peer has agreed on a key, and has no session yet or is gone.
// Of each host, and of all, they are bounded. A host with a shared key can begin as many as it likes, so none is refused:
// the oldest one gives its place, of the host that is full or else of the one that has most. So a host that begins many
// takes places from itself alone. Guarded by the layer's mutex.
type passing struct {
	hosts      map[transport.Addr]*list.List // of associations, the oldest first
	len        int
	most       int
	mostOfHost int
	added      uint64        // counts them
	evicted    atomic.Uint64 // since the last batch; the receiver reads it
}

func (p *passing) init(cfg *Config) {
	p.hosts = make(map[transport.Addr]*list.List)
	p.most, p.mostOfHost = min(cfg.Peers, mostPassing), cfg.PeersPerHost
}

// add adds an association, and returns the one that gave its place to it, or nil.
func (p *passing) add(a *association) (evicted *association) {
	host := a.pair.Addr.Host()
	l := p.hosts[host]
	switch {
	case l != nil && l.Len() >= p.mostOfHost:
		evicted = oldestOf(l)
	case p.len >= p.most:
		evicted = p.oldestOfMost()
	}
	if evicted != nil {
		p.remove(evicted)
		p.evicted.Add(1)
	}
	if l = p.hosts[host]; l == nil {
		l = list.New()
		p.hosts[host] = l
	}
	p.len++
	p.added++
	a.passed, a.passing = p.added, l.PushBack(a)
	return evicted
}

// remove removes an association that is in p.
func (p *passing) remove(a *association) {
	host := a.pair.Addr.Host()
	l := p.hosts[host]
	l.Remove(a.passing)
	if l.Len() == 0 {
		delete(p.hosts, host)
	}
	p.len--
	a.passing = nil
}

func oldestOf(l *list.List) *association { return l.Front().Value.(*association) }

// oldestOfMost returns the oldest association of the host that has most, and of several such hosts the oldest of all. It looks at each
// host, which takes less than a handshake.
func (p *passing) oldestOfMost() (oldest *association) {
	most := 0
	for _, l := range p.hosts {
		a, n := oldestOf(l), l.Len()
		if n > most || n == most && a.passed < oldest.passed {
			oldest, most = a, n
		}
	}
	return oldest
}
