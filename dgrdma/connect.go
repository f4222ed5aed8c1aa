package dgrdma

import (
	"fmt"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Connect makes the connection to a peer, as Dial does for a peer that a string
// names. Transactions can be posted at once. A peer that was learned already
// keeps its connection, which is returned. An IPv6 address of a link, fe80::1, needs the
// interface of this machine that is on it as its zone, fe80::1%eth0. No endpoint has the id 0:
// LookupPeer finds out which one there is. If a peer of our own kind is at the address that has
// another id, the connection fails with [ErrWrongID], an [*IDError].
func (e *Endpoint) Connect(p Peer) (*Conn, error) {
	if p.ID == 0 {
		return nil, fmt.Errorf("dgrdma: connect: peer id is 0, which is nobody's: ids are 1 to 65535")
	}
	if p.Addr.IsZero() {
		return nil, fmt.Errorf("dgrdma: connect peer %d: no address", p.ID)
	}
	if p.Size > 1<<32 {
		return nil, fmt.Errorf("dgrdma: connect peer %d: memory of %d bytes, at most 2^32: %w", p.ID, p.Size, ErrBounds)
	}
	at, err := e.pathTo(p.Addr)
	if err == ErrClosed {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("dgrdma: connect peer %d at %v: %w", p.ID, p.Addr, err)
	}
	p.Addr = at
	c, err := e.newConn(p, e.now(), connectPeer(false))
	if err != nil {
		return nil, err
	}
	if err := e.answerTo(c.peer.As); err != nil {
		return nil, fmt.Errorf("dgrdma: connect peer %d as %d: %w", p.ID, p.As, err)
	}
	if x := e.takeIntroduction(e.now(), c.key()); x != nil && c.session != nil {
		c.session.introduced(e.now(), x)
	}
	return e.enter(c)
}

// pathTo returns an address with the one of ours that is sent from, or why nothing can be sent
// there.
func (e *Endpoint) pathTo(to transport.Addr) (transport.Addr, error) {
	switch here, err := e.transport.LocalAddr(), transport.Receives(to); {
	case e.draining.Load():
		return to, ErrClosed
	case err != nil:
		return to, err
	case !here.IsZero() && !here.Sends(to):
		return to, fmt.Errorf("nothing can be sent there from %v, which is an address of another kind"+
			" (IPv4, IPv6 or Ethernet): open an endpoint at one of the same", here)
	}
	return e.transport.Towards(to)
}

// Reaches reports why nothing can be sent from here to an address, as far as this machine knows
// now: no way leads there, or it is none of one endpoint. Nothing is sent.
func (e *Endpoint) Reaches(to Addr) error {
	_, err := e.pathTo(to)
	return err
}

// enter puts a connection into the table, or returns the one that stands for it.
func (e *Endpoint) enter(c *Conn) (*Conn, error) {
	if known := e.peers.find(c.key()); known != nil && known.learned.Load() {
		known.makeRoom()
	}
	entered, err := e.add(c)
	if entered == c {
		c.entry.queue()
	}
	if err == nil {
		e.sched.Work(false) // one that was a guest is told that it is none any more
	}
	return entered, err
}

// makeRoom takes a connection that was learned out of the table if it is down: no program has it,
// and of no use.
func (c *Conn) makeRoom() {
	c.mu.Lock()
	over := c.tx.err != nil
	c.tx.closed = c.tx.closed || over
	c.mu.Unlock()
	if over {
		c.ep.forget(c)
	}
}

func (e *Endpoint) add(c *Conn) (*Conn, error) {
	p := &c.peer
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.peers.find(c.key())
	switch {
	case e.draining.Load():
		return nil, ErrClosed
	case e.sched.Err() != nil:
		return nil, fmt.Errorf("dgrdma: connect peer %d: %w", p.ID, e.sched.Err())
	case adopts(known, c):
		e.peers.adopt(known)
		known.admitted()
		known.connected()
		known.size.Store(p.Size)
		return known, nil
	case known != nil:
		return nil, fmt.Errorf("dgrdma: connect peer %d at %v: %w", p.ID, p.Addr, ErrPeerExists)
	case e.peers.len() >= e.cfg.MaxPeers:
		return nil, fmt.Errorf("dgrdma: connect peer %d: %d peers: %w", p.ID, e.cfg.MaxPeers, ErrTooManyPeers)
	}
	c.rx.look(e.memory, c)
	for _, s := range e.services {
		c.channels.add(c.meet(s))
	}
	e.peers.add(c)
	e.settleKeys(c)
	e.focus()
	return c, nil
}

// connected has a connection that was learned be the program's.
func (c *Conn) connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx.kind.connected(c.ep.now())
}

// adopts reports whether a connection that was learned can stand for c: peers may
// speak before they are spoken to.
func adopts(learned, c *Conn) bool {
	return learned != nil && learned.learned.Load() && learned.profile == c.profile && learned.Err() == nil
}

// Conns returns the connections, learned ones included.
func (e *Endpoint) Conns() []*Conn {
	return e.peers.all()
}

// answerTo has the transport pass on what is for that id, too.
func (e *Endpoint) answerTo(id frame.EndpointID) error {
	if id == e.cfg.ID {
		return nil
	}
	return e.transport.Select(uint16(id))
}

// focus tells the transport if there is but one peer to listen to. Guarded by mu.
func (e *Endpoint) focus() {
	var only transport.Addr
	if !e.gate.Accepts() {
		only = e.peers.only()
	}
	e.transport.Focus(only)
}

// forget takes a connection out of the table.
func (e *Endpoint) forget(c *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(c)
}

// remove is forget, guarded by mu.
func (e *Endpoint) remove(c *Conn) {
	if e.peers.remove(c) {
		e.settleKeys(c)
		e.focus()
		c.mu.Lock()
		c.tx.addTo(&e.gone, &e.goneTimes)
		c.mu.Unlock()
	}
}
