package endpoint

import (
	"fmt"
	"slices"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// peerTable finds connections. It is never changed, but replaced.
type peerTable struct {
	byIDs map[ids][]*Conn // ids are unique by convention only
	all   []*Conn
}

// ids are those of a connection's two ends.
type ids struct{ ours, theirs frame.EndpointID }

// Connect makes the connection to a peer. It does not wait for the peer to be
// there: transactions can be posted at once. A peer that was learned already
// keeps its connection, which is returned.
func (e *Endpoint) Connect(p Peer) (*Conn, error) {
	if p.ID == 0 {
		return nil, fmt.Errorf("dgrdma: connect: peer id is 0")
	}
	if p.Addr.IsZero() {
		return nil, fmt.Errorf("dgrdma: connect peer %d: no address", p.ID)
	}
	if p.Size > 1<<32 {
		return nil, fmt.Errorf("dgrdma: connect peer %d: memory of %d bytes, at most 2^32: %w", p.ID, p.Size, ErrBounds)
	}
	return e.connect(p, false)
}

func (e *Endpoint) connect(p Peer, learned bool) (*Conn, error) {
	c, err := e.newConn(p, e.now())
	if err != nil {
		return nil, err
	}
	c.learned.Store(learned)
	if err := e.answerTo(c.peer.As); err != nil {
		return nil, fmt.Errorf("dgrdma: connect peer %d as %d: %w", p.ID, p.As, err)
	}
	var adopted *Conn
	e.mu.Lock()
	old := e.peers.Load()
	known := old.find(c.peer.As, p.ID, p.Addr)
	switch {
	case e.closed || e.draining.Load():
		err = ErrClosed
	case len(old.all) >= e.cfg.MaxPeers:
		err = fmt.Errorf("dgrdma: connect peer %d: %d peers: %w", p.ID, len(old.all), ErrTooManyPeers)
	case c.adopts(known):
		adopted = known
		adopted.learned.Store(false)
		adopted.size.Store(p.Size)
	case known != nil:
		err = fmt.Errorf("dgrdma: connect peer %d at %v: %w", p.ID, p.Addr, ErrPeerExists)
	default:
		c.view()
		if beside := old.at(p.Addr); beside != nil {
			c.to = beside.to
		}
		e.peers.Store(old.with(c))
		e.focus()
	}
	e.mu.Unlock()
	if err != nil || adopted != nil {
		return adopted, err
	}
	if c.profile.Session {
		c.queue()
		e.work(false)
	}
	return c, nil
}

// adopts reports whether a connection that was learned can stand for c: peers may
// speak before they are spoken to.
func (c *Conn) adopts(learned *Conn) bool {
	return learned != nil && learned.learned.Load() && !c.learned.Load() && learned.profile == c.profile && !learned.down.Load()
}

// Conns returns the connections, learned ones included.
func (e *Endpoint) Conns() []*Conn { return slices.Clone(e.peers.Load().all) }

// answerTo has the transport pass on what is for that id, too.
func (e *Endpoint) answerTo(id frame.EndpointID) error {
	s, ok := e.transport.(transport.Selector)
	if !ok || id == e.cfg.ID {
		return nil
	}
	return s.Select(uint16(id))
}

func (t *peerTable) find(ours, theirs frame.EndpointID, addr transport.Addr) *Conn {
	for _, c := range t.byIDs[ids{ours, theirs}] {
		if c.peer.Addr == addr {
			return c
		}
	}
	return nil
}

// at returns a connection to that address.
func (t *peerTable) at(addr transport.Addr) *Conn {
	for _, c := range t.all {
		if c.peer.Addr == addr {
			return c
		}
	}
	return nil
}

func (t *peerTable) with(c *Conn) *peerTable { return newPeerTable(append(slices.Clone(t.all), c)) }

func (t *peerTable) without(c *Conn) *peerTable {
	return newPeerTable(slices.DeleteFunc(slices.Clone(t.all), func(x *Conn) bool { return x == c }))
}

func newPeerTable(all []*Conn) *peerTable {
	t := &peerTable{byIDs: make(map[ids][]*Conn, len(all)), all: all}
	for _, c := range all {
		k := ids{c.peer.As, c.peer.ID}
		t.byIDs[k] = append(t.byIDs[k], c)
	}
	return t
}

// focus tells the transport if there is but one peer to listen to. Guarded by mu.
func (e *Endpoint) focus() {
	f, ok := e.transport.(transport.Focuser)
	if !ok {
		return
	}
	var only transport.Addr
	for i, c := range e.peers.Load().all {
		if e.accepting.Load() || i > 0 && c.peer.Addr != only {
			only = transport.Addr{}
			break
		}
		only = c.peer.Addr
	}
	f.Focus(only)
}

// AcceptAny changes [Config.AcceptAny]: whether peers are learned from what they
// send.
func (e *Endpoint) AcceptAny(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed && e.accepting.Swap(on) != on {
		e.focus()
	}
}

// forget takes a connection out of the table.
func (e *Endpoint) forget(c *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if old := e.peers.Load(); slices.Contains(old.all, c) {
		e.peers.Store(old.without(c))
		e.focus()
		s := c.Stats()
		e.gone.Add(&s.Counters)
	}
}
