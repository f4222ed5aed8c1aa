package dgrdma

import (
	"fmt"
	"sync"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/frame"
)

// Conn is the connection to one peer: what we post to it, and what it writes
// into the endpoint's memory. All methods may be called at the same time.
type Conn struct {
	terms
	ep      *Endpoint
	kind    kind
	session *sessionPeer    // the kind, of a session peer; or nil
	at      int             // in the table of peers, whose lock guards it
	place   admission.Place // of a learned peer, guarded by the same lock
	entry   entry

	plain Flow // to the peer's memory

	rx receiving // belongs to the holder of the receive lock

	mu sync.Mutex
	tx sending // guarded by mu
}

// entry is a connection's place in the lists of its scheduler.
type entry struct {
	run.Entry[*Conn]
	of *run.Scheduler[*Conn]
}

func (e *entry) queue()                  { e.of.Queue(&e.Entry) }
func (e *entry) queued() bool            { return e.IsQueued() }
func (e *entry) arm(now, at ack.Instant) { e.of.Arm(&e.Entry, now, at) }
func (e *entry) disarm()                 { e.of.Disarm(&e.Entry) }

// newConn makes a connection, of which connect knows the kind.
func (e *Endpoint) newConn(p Peer, now ack.Instant, connect func(*Conn) kind) (*Conn, error) {
	prof, err := e.cfg.profileFor(p)
	if err != nil {
		return nil, err
	}
	if p.As == 0 {
		p.As = e.cfg.ID
	}
	c := &Conn{ep: e, terms: terms{cfg: &e.cfg, headroom: e.headroom, marks: e.marks, header: frame.HeaderSize, offers: &e.localServices, peer: p, profile: prof}}
	c.to = &c.peer.Addr
	if prof.Session {
		c.header = frame.SessionHeaderSize
	}
	if e.sealed != nil && !prof.Session {
		return nil, fmt.Errorf("dgrdma: connect peer %d: connections are sealed here, and peers of the kind %s know nothing of that", p.ID, prof.Name)
	}
	limit := min(e.cfg.MTU, e.carries(p.Addr))
	if prof.MaxFrame != 0 {
		limit = min(limit, prof.MaxFrame)
	}
	c.mayCheck = e.mayCheck() && prof.Session
	narrow, short := e.within(surelyCarried), e.within(shortCarried)
	if c.mayCheck {
		limit, narrow, short = limit-frame.ChecksumSize, narrow-frame.ChecksumSize, short-frame.ChecksumSize
	}
	c.most = wholeFrame(c.header, limit)
	if c.most-c.partHead() < prof.Chunk {
		return nil, fmt.Errorf("dgrdma: connect peer %d: frames of %d bytes have no room for data", p.ID, limit)
	}
	c.narrow = wholeFrame(c.header, narrow)
	c.short = min(c.most, wholeFrame(c.header, short))
	c.sure = c.most
	if prof.Session && e.transport.MayNarrow(p.Addr) {
		c.sure = min(c.most, c.narrow)
	}
	c.routed = !e.transport.IsNear(p.Addr)
	c.size.Store(p.Size)
	c.entry.of = &e.sched
	c.entry.Init(c)
	c.plain = Flow{conn: c, name: e.own}
	c.tx.init(&c.terms, &c.entry, &e.batch)
	c.rx.init(&c.terms, &e.receiveScratch, c)
	c.kind = connect(c)
	c.tx.start(now)
	return c, nil
}

// connectPeer makes a connection to a peer one of its kind. learned: the connection begins with a frame of the peer's.
func connectPeer(learned bool) func(*Conn) kind {
	return func(c *Conn) kind {
		if c.profile.Session {
			return newSessionPeer(c, learned)
		}
		return newForeignPeer(&c.tx, &c.rx, c.ep)
	}
}

// event implements observer.
func (c *Conn) event(ev Event) {
	if !c.kind.isPeer() {
		return
	}
	ev.Conn, ev.Peer = c, c.name()
	c.ep.event(ev)
}

// Name returns the peer's id and address.
func (c *Conn) Name() PeerName {
	return c.name()
}

// String names the peer, and nothing of what is within.
func (c *Conn) String() string {
	return "connection to " + c.name().String()
}

// Peer returns what the connection was made with.
func (c *Conn) Peer() Peer {
	p := c.peer
	p.Size = c.size.Load()
	return p
}

// Memory returns what the peer writes into: the endpoint's, or what its PerConn
// returned for this connection.
func (c *Conn) Memory() Memory {
	return c.rx.own.Memory
}

// Profile returns what is assumed of the peer.
func (c *Conn) Profile() Profile {
	return c.profile
}

// fail ends the connection. Guarded by mu.
func (c *Conn) fail(now ack.Instant, fin *finished, err error) {
	if c.tx.fail(now, fin, err) {
		c.giveBack()
	}
}

// giveBack has the receiver release what is kept for a connection that
// failed or was reset. Guarded by mu.
func (c *Conn) giveBack() {
	// What is kept of nothing is not to keep the connection.
	if c.tx.heard.held > 0 || c.ep.sched.IsBatching() {
		c.ep.sched.AtBatchEnd(c.rx.letGo)
	}
}

// Done returns a channel that is closed when the connection failed or was
// closed. After Reset there is a new one. Transactions may be told their end after
// that, also that they are done. A program that has to know waits for their Done, which is called
// in any case.
func (c *Conn) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tx.done
}

// Err returns why the connection failed, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tx.err
}
