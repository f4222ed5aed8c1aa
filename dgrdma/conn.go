package dgrdma

import (
	"fmt"
	"sync"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
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
	c := &Conn{ep: e, terms: terms{cfg: &e.cfg, headroom: e.headroom, header: frame.HeaderSize, offers: &e.localServices, peer: p, profile: prof}}
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
	narrow := e.within(surelyCarried)
	if c.mayCheck {
		limit, narrow = limit-frame.ChecksumSize, narrow-frame.ChecksumSize
	}
	c.most = wholeFrame(c.header, limit)
	if c.most-c.partHead() < prof.Chunk {
		return nil, fmt.Errorf("dgrdma: connect peer %d: frames of %d bytes have no room for data", p.ID, limit)
	}
	c.narrow = wholeFrame(c.header, narrow)
	c.sure = c.most
	if prof.Session && e.transport.MayNarrow(p.Addr) {
		c.sure = min(c.most, c.narrow)
	}
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

// carries returns how long a frame may be for the interface towards that address.
func (e *Endpoint) carries(to transport.Addr) int { return e.within(e.transport.MTU(to)) }

// within returns how long a frame may be that leaves in so many bytes.
func (e *Endpoint) within(size int) int {
	if e.sealed != nil {
		return size - seal.Overhead
	}
	return size
}

// wholeFrame returns how long a full frame is where there is that much room: it has a whole number
// of 8 bytes after the header, so that all are equally long.
func wholeFrame(header, room int) int { return header + (room-header)&^7 }

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

// Reset begins again with a peer that is down, or that was started again:
// everything pending fails with ErrReset, and what the peer sent so far is
// forgotten. Frame ids start at first where the peer's profile asks for a fixed
// first id (0: that id); peers of our own kind need none and are told. It fails where this machine
// has the address no more from which the peer is sent to, [Peer].Addr.Local: the connection is of no use then, close
// it and make another.
func (c *Conn) Reset(first Seq) error {
	if _, err := c.ep.transport.Towards(c.peer.Addr); err != nil {
		return fmt.Errorf("dgrdma: reset peer %d at %v: %w; close the connection, and make another", c.peer.ID, c.peer.Addr, err)
	}
	if err := c.reset(first); err != nil {
		return err
	}
	c.ep.sched.Work(false)
	return nil
}

func (c *Conn) reset(first frame.Seq) error {
	now := c.ep.now()
	var fin finished
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.ep.finish(&fin)
	tx := &c.tx
	if tx.closed || c.ep.draining.Load() {
		return ErrClosed
	}
	if tx.err == nil {
		tx.abandon(now, &fin, c.peerError("transactions in flight", ErrReset))
		tx.start(now)
	} else {
		tx.revive(now)
	}
	tx.wire.resume(now, first)
	c.resets.Add(1)
	c.giveBack()
	tx.wake(now)
	return nil
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

// Close ends the connection: everything pending fails with ErrClosed, and the
// peer's frames are refused from now on. A peer of our own kind is told, and not waited for:
// its connection fails with [ErrPeerClosed]. The endpoint stays. Close does not
// wait for callbacks that run, and may be called from Done.
func (c *Conn) Close() error {
	if c.end() {
		c.ep.sched.AfterBatch(c.disconnect)
	}
	return nil
}

// disconnect has the peer told that the connection is closed.
func (c *Conn) disconnect() {
	c.mu.Lock()
	c.tx.disconnect()
	c.mu.Unlock()
	c.ep.sched.Work(false)
}

// end is Close, of which the peer is not told. It reports whether the peer is to be: the connection
// had not ended before, or was about to begin again.
func (c *Conn) end() (tells bool) {
	tells = c.stop()
	c.ep.forget(c)
	return tells
}

// stop is end of a connection that stays in the table.
func (c *Conn) stop() (tells bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tells = c.tx.sendsDisconnect()
	c.tx.closed = true
	var fin finished
	c.fail(c.ep.now(), &fin, ErrClosed)
	// Before anybody else sees that nothing is posted any more: Endpoint.Close would
	// return without these.
	c.ep.finish(&fin)
	return tells
}
