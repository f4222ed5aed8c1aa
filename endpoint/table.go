package endpoint

import (
	"slices"
	"sync"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// ids are those of a connection's two ends.
type ids struct{ ours, theirs frame.EndpointID }

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
	all   []*Conn // each knows where it is
	sites map[transport.Addr]*site
	hosts map[transport.Addr]*host // those that learned peers have
	// learned is how many of all are.
	learned int
}

// host is a machine or an interface of learned peers.
type host struct {
	peers  []*Conn // each knows where it is
	search search  // among them; of who has the turn to receive
}

// places are where a connection is in the table's lists.
type places struct{ all, host int }

// site is an address of peers: frames to all of them share it.
type site struct {
	addr transport.Addr
	n    int
}

func (t *peerTable) init() {
	t.byKey = make(map[peerKey]*Conn)
	t.sites = make(map[transport.Addr]*site)
	t.hosts = make(map[transport.Addr]*host)
}

func (t *peerTable) find(k peerKey) *Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKey[k]
}

func (t *peerTable) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.all)
}

func (t *peerTable) learnedLen() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.learned
}

// fullHost returns the host with that address, whatever the port, if it has that many
// learned peers, or nil.
func (t *peerTable) fullHost(a transport.Addr, most int) *host {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if h := t.hosts[a.Host()]; h != nil && len(h.peers) >= most {
		return h
	}
	return nil
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

// append appends the connections for which want says yes, or all. want must not
// look into the table.
func (t *peerTable) append(dst []*Conn, want func(*Conn) bool) []*Conn {
	return t.appendOf(nil, dst, want)
}

// appendOf is append for the learned peers of a host, or for all if h is nil.
func (t *peerTable) appendOf(h *host, dst []*Conn, want func(*Conn) bool) []*Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	among := t.all
	if h != nil {
		among = h.peers
	}
	if want == nil {
		return append(dst, among...)
	}
	for _, c := range among {
		if want(c) {
			dst = append(dst, c)
		}
	}
	return dst
}

func (t *peerTable) add(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[c.key()] = c
	if c.kind.isPeer() { // else it is listened to as one
		c.at.all = len(t.all)
		t.all = append(t.all, c)
	}
	s := t.sites[c.peer.Addr]
	if s == nil {
		s = &site{addr: c.peer.Addr}
		t.sites[c.peer.Addr] = s
	}
	s.n++
	c.to = &s.addr
	if c.learned.Load() {
		h := t.hosts[c.peer.Addr.Host()]
		if h == nil {
			h = new(host)
			t.hosts[c.peer.Addr.Host()] = h
		}
		c.at.host = len(h.peers)
		h.peers = append(h.peers, c)
		t.learned++
	}
}

// adopt makes a learned peer a configured one.
func (t *peerTable) adopt(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.learned.Store(false)
	t.leaveHost(c)
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
		last := t.all[len(t.all)-1]
		t.all[c.at.all], last.at.all = last, c.at.all
		t.all = slices.Delete(t.all, len(t.all)-1, len(t.all))
	}
	if s := t.sites[c.peer.Addr]; s.n == 1 {
		delete(t.sites, c.peer.Addr)
	} else {
		s.n--
	}
	if c.learned.Load() {
		t.leaveHost(c)
	}
	return true
}

func (t *peerTable) leaveHost(c *Conn) {
	t.learned--
	h := t.hosts[c.peer.Addr.Host()]
	last := h.peers[len(h.peers)-1]
	h.peers[c.at.host], last.at.host = last, c.at.host
	h.peers = slices.Delete(h.peers, len(h.peers)-1, len(h.peers))
	if len(h.peers) == 0 {
		delete(t.hosts, c.peer.Addr.Host())
	}
}
