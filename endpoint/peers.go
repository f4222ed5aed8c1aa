package endpoint

import (
	"fmt"
	"slices"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// peerTable finds connections. It is never changed, but replaced.
type peerTable struct {
	byID map[frame.EndpointID][]*Conn // ids are unique by convention only
	all  []*Conn
}

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
	var adopted *Conn
	e.mu.Lock()
	old := e.peers.Load()
	switch {
	case e.closed || e.draining.Load():
		err = ErrClosed
	case len(old.all) >= e.cfg.MaxPeers:
		err = fmt.Errorf("dgrdma: connect peer %d: %d peers: %w", p.ID, len(old.all), ErrTooManyPeers)
	case c.adopts(old.find(p.ID, p.Addr)):
		adopted = old.find(p.ID, p.Addr)
		adopted.learned.Store(false)
		adopted.size.Store(p.Size)
	case old.find(p.ID, p.Addr) != nil:
		err = fmt.Errorf("dgrdma: connect peer %d at %v: %w", p.ID, p.Addr, ErrPeerExists)
	default:
		c.view()
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

func (t *peerTable) find(id frame.EndpointID, addr transport.Addr) *Conn {
	for _, c := range t.byID[id] {
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
	t := &peerTable{byID: make(map[frame.EndpointID][]*Conn, len(all)), all: all}
	for _, c := range all {
		t.byID[c.peer.ID] = append(t.byID[c.peer.ID], c)
	}
	return t
}

// focus tells the transport if there is but one peer to listen to. Guarded by mu.
func (e *Endpoint) focus() {
	f, ok := e.transport.(transport.Focuser)
	if !ok || e.cfg.AcceptAny {
		return
	}
	var only transport.Addr
	if all := e.peers.Load().all; len(all) == 1 {
		only = all[0].peer.Addr
	}
	f.Focus(only)
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
