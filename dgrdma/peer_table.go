package dgrdma

import (
	"slices"
	"sync"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// ids are those of a connection's two ends.
type ids struct{ local, remote frame.EndpointID }

// peerKey names a connection: ids are unique by convention only.
type peerKey struct {
	ids
	addr transport.Addr
}

// peerTable holds the connections of an endpoint. Whatever a peer can cause to be
// done with it takes the same time however many there are.
type peerTable struct {
	mu    sync.RWMutex
	byKey map[peerKey]*Conn
	list  []*Conn // each knows where it is
	sites map[transport.Addr]*site
	// places are those of the learned peers among them.
	places admission.Places[learnedPeer]
}

// site is an address of peers: frames to all of them share it.
type site struct {
	addr transport.Addr
	n    int
}

func (t *peerTable) init(b admission.Bounds) {
	t.byKey = make(map[peerKey]*Conn)
	t.sites = make(map[transport.Addr]*site)
	t.places.Init(b)
}

func (t *peerTable) find(k peerKey) *Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKey[k]
}

func (t *peerTable) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.list)
}

// room reports whether there is room for a learned peer at that address, or would be once another one is evicted.
func (t *peerTable) room(now ack.Instant, a transport.Addr) (evict learnedPeer, s admission.Space) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.places.Room(now, a, len(t.list))
}

// only returns the one address that all peers have, or none.
func (t *peerTable) only() transport.Addr {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.sites) == 1 {
		for a := range t.sites {
			return a
		}
	}
	return transport.Addr{}
}

// all returns the connections.
func (t *peerTable) all() []*Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.list)
}

func (t *peerTable) add(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[c.key()] = c
	if c.kind.isPeer() { // else it is listened to as one
		c.at = len(t.list)
		t.list = append(t.list, c)
	}
	s := t.sites[c.peer.Addr]
	if s == nil {
		s = &site{addr: c.peer.Addr}
		t.sites[c.peer.Addr] = s
	}
	s.n++
	c.to = &s.addr
	if c.learned.Load() {
		t.places.Add(learnedPeer{c}, c.peer.Addr)
	}
}

// adopt makes a learned peer a configured one.
func (t *peerTable) adopt(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.learned.Store(false)
	t.places.Remove(learnedPeer{c}, c.peer.Addr)
}

// remove reports whether c was in the table.
func (t *peerTable) remove(c *Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey[c.key()] != c {
		return false
	}
	delete(t.byKey, c.key())
	if c.kind.isPeer() {
		last := t.list[len(t.list)-1]
		t.list[c.at], last.at = last, c.at
		t.list = slices.Delete(t.list, len(t.list)-1, len(t.list))
	}
	if s := t.sites[c.peer.Addr]; s.n == 1 {
		delete(t.sites, c.peer.Addr)
	} else {
		s.n--
	}
	t.places.Remove(learnedPeer{c}, c.peer.Addr)
	return true
}
