package link

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint/space"
)

// A link that this side has ended is over at once: its memory is for links of other peers. Its
// own peer may still write there until it says that it posts nothing more, and is refused; a
// link of that peer must not get the memory before, or it would take such a write for its own.
// So what is left of the link until then is which memory that is. An honest host answers from
// its goroutine that receives, whatever the program there does.

// endedLink is a link that is over here, of whose end the peer has not said that it knows.
type endedLink struct {
	number  uint32
	attempt uint64
	life    uint32
	dialed  bool // by the peer
	memory  space.Span
	told    <-chan struct{} // closed when the peer has heard of the end, or never will
	parted  chan struct{}   // closed when it has answered, or never will
}

// mostEnded is how many such links there may be of all peers: a host of which as many are
// there as are left for others is refused when it dials. Arbitrary.
const mostEnded = 4 * mostLinks

// apart is the memory that ended links had, by address.
type apart []space.Span

func byAt(s space.Span, at uint64) int { return cmp.Compare(s.At, at) }

func (a *apart) add(s space.Span) {
	i, _ := slices.BinarySearchFunc(*a, s.At, byAt)
	*a = slices.Insert(*a, i, s)
}

func (a *apart) remove(s space.Span) {
	if i, found := slices.BinarySearchFunc(*a, s.At, byAt); found {
		*a = slices.Delete(*a, i, i+1)
	}
}

// retire takes a link out of those that the peer has, and keeps its memory apart unless the
// peer is through with it.
func (p *peer) retire(l *Link, through bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l.number)
	dialed := p.dialed[l.attempt] == l
	if dialed {
		delete(p.dialed, l.attempt)
	}
	if through {
		close(l.parted)
		return
	}
	e := &endedLink{number: l.number, attempt: l.attempt, life: l.life, dialed: dialed, memory: l.memory, told: l.told, parted: l.parted}
	p.ended[e.number] = e
	if dialed {
		p.endedByAttempt[e.attempt] = e
	}
	p.apart.add(e.memory)
	p.host.endings.count(p, 1)
}

// confirm ends the wait for what the peer says of an ended link, if it waits. Guarded by mu.
func (p *peer) confirm(e *endedLink) {
	if e == nil || p.ended[e.number] != e {
		return
	}
	delete(p.ended, e.number)
	if e.dialed {
		delete(p.endedByAttempt, e.attempt)
	}
	p.apart.remove(e.memory)
	p.host.endings.count(p, -1)
	close(e.parted)
}

// confirmed notes that the peer posts nothing more for a link, if it is an ended one. It
// reports whether that is known of the link.
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

// allEnded returns the ended links that wait.
func (p *peer) allEnded() []*endedLink {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.ended))
}

// endings counts the ended links of all peers.
type endings struct {
	mu     sync.Mutex
	n      int
	byHost map[dgrdma.PeerName]int // of which only the host's address is set
}

func (p *peer) hostName() dgrdma.PeerName { return dgrdma.PeerName{Addr: p.conn.Name().Addr.Host()} }

func (s *endings) count(p *peer, change int) {
	at := p.hostName()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHost == nil {
		s.byHost = make(map[dgrdma.PeerName]int)
	}
	s.n += change
	if s.byHost[at] += change; s.byHost[at] == 0 {
		delete(s.byHost, at)
	}
}

// full reports whether the host of a peer has as many as are left for others.
func (s *endings) full(p *peer) bool {
	at := p.hostName()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byHost[at]
	return n > 0 && n >= mostEnded-s.n
}

func (s *endings) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}
