package admission

import (
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/transport"
)

// searchPause is for how long no peer to evict is searched for after none was found: a search takes the longer, the more peers
// there are. Arbitrary.
const searchPause = ack.Instant(100 * time.Millisecond)

// Bounds are how many peers there may be.
type Bounds struct {
	Peers   int // connected and learned
	Learned int
	PerHost int           // learned ones of a host
	GiveUp  time.Duration // for how long a peer that is there may be silent
}

// Peer is a learned peer, as Places sees it.
type Peer interface {
	comparable
	// Place returns what Places keeps of the peer.
	Place() *Place
	// Standing returns how the peer is at this moment.
	Standing() Standing
}

// Place is where a learned peer is in the lists of Places. The zero Place is in none.
type Place struct {
	kept        bool
	all, ofHost int
}

// Standing is how a learned peer is.
type Standing struct {
	LivedAt   ack.Instant // when it last showed that it is there
	Down      bool
	InSession bool // or it is of a kind without sessions
}

// mayGo reports whether a peer may be evicted: one that is down, one without a session that has been silent for longer than GiveUp,
// and one that has been for longer than a peer that is there would be for no reason.
func (b *Bounds) mayGo(now ack.Instant, s Standing) bool {
	silent := now.Sub(s.LivedAt)
	return s.Down || silent > 6*b.GiveUp || !s.InSession && silent > b.GiveUp
}

// Places are those of the learned peers. What a source can have done with them takes the same time however many there are, but for a search.
type Places[P Peer] struct {
	bounds Bounds
	all    group[P]
	hosts  map[transport.Addr]*group[P]
}

// group are learned peers, among which one may be searched for.
type group[P Peer] struct {
	peers []P
	found P           // the one that was found
	again ack.Instant // when the next search pays, after none was found
}

// Init makes p places for that many peers.
func (p *Places[P]) Init(b Bounds) {
	*p = Places[P]{bounds: b, hosts: make(map[transport.Addr]*group[P])}
}

// Learned returns how many learned peers there are.
func (p *Places[P]) Learned() int { return len(p.all.peers) }

// Hosts returns how many hosts they have.
func (p *Places[P]) Hosts() int { return len(p.hosts) }

// Add gives a peer at that address a place.
func (p *Places[P]) Add(x P, at transport.Addr) {
	h := p.hosts[at.Host()]
	if h == nil {
		h = new(group[P])
		p.hosts[at.Host()] = h
	}
	*x.Place() = Place{true, len(p.all.peers), len(h.peers)}
	p.all.peers = append(p.all.peers, x)
	h.peers = append(h.peers, x)
}

// Remove takes the place of a peer at that address, if it has one.
func (p *Places[P]) Remove(x P, at transport.Addr) {
	was := *x.Place()
	if !was.kept {
		return
	}
	h := p.hosts[at.Host()]
	p.all.cut(was.all).Place().all = was.all
	h.cut(was.ofHost).Place().ofHost = was.ofHost
	*x.Place() = Place{}
	if len(h.peers) == 0 {
		delete(p.hosts, at.Host())
	}
}

// cut takes a peer out, which may be the one that was found. The last one, which it returns, gets its index.
func (g *group[P]) cut(i int) (last P) {
	var none P
	g.found = none
	n := len(g.peers) - 1
	last = g.peers[n]
	g.peers[i] = last
	g.peers = slices.Delete(g.peers, n, n+1)
	return last
}

// Space says whether there is a place for another peer.
type Space uint8

const (
	NoPlace Space = iota
	FreePlace
	AfterEviction // there is one, once a learned peer is evicted
)

// Room reports whether there is a place for a peer at that address, or would be if a learned peer were evicted: the one silent longest
// of those that may go. peers is how many there are, connected and learned.
func (p *Places[P]) Room(now ack.Instant, at transport.Addr, peers int) (evict P, s Space) {
	among := &p.all
	switch h := p.hosts[at.Host()]; {
	case h != nil && len(h.peers) >= p.bounds.PerHost:
		among = h // or the host would stay full of peers that are long gone
	case peers < p.bounds.Peers && len(p.all.peers) < p.bounds.Learned:
		return evict, FreePlace
	}
	if p.search(now, among) {
		return among.found, AfterEviction
	}
	return evict, NoPlace
}

// search finds the peer of a group that would be evicted, and reports whether there is one.
func (p *Places[P]) search(now ack.Instant, among *group[P]) bool {
	var none P
	if x := among.found; x != none && p.bounds.mayGo(now, x.Standing()) {
		return true
	}
	among.found = none
	if now < among.again {
		return false
	}
	var since ack.Instant
	for _, x := range among.peers {
		if s := x.Standing(); p.bounds.mayGo(now, s) && (among.found == none || s.LivedAt < since) {
			among.found, since = x, s.LivedAt
		}
	}
	if among.found == none {
		among.again = now + searchPause
		return false
	}
	return true
}
