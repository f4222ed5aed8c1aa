package endpoint

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Conn is the connection to one peer: what we post to it, and what it writes
// into the endpoint's memory. All methods may be called at the same time. A nil
// Conn, as a failed Connect leaves it, is down with [ErrNil].
type Conn struct {
	// Immutable.
	ep         *Endpoint
	peer       Peer
	to         *transport.Addr // peer.Addr, shared by all connections to it
	at         places          // in the table of peers, whose lock guards it
	profile    Profile
	frameMax   int // length of a full frame
	leastChunk int // data bytes of a message that fills a frame, if it is not the last
	memory     Memory
	placed     Placed // memory, if it wants to know

	learned atomic.Bool   // from what it sent, and not connected since
	size    atomic.Uint64 // of the peer's memory; 0: not known
	entry   sched.Entry[*Conn]
	down    atomic.Bool   // err is not nil
	next    atomic.Uint32 // the id after those of the last batch, an ack.Wide
	epoch   atomic.Int32  // counts the resets that the receiving half must follow

	// Owned by who has the turn to receive.
	rx receiving

	// Guarded by mu.
	mu       sync.Mutex
	sender   ack.Sender
	ctl      ack.Controller
	due      ack.Due
	acking   bool // acknowledgements are sent to this peer
	posted   transactions
	nextTxn  uint32
	lives    uint32      // see Life
	out      []outFrame  // by frame id modulo its length
	slab     *slab       // where the next frame goes; nil: into a new one
	leaving  []*slab     // of frames to be dropped, once for each, when batched was sent
	batched  uint64      // the batch in which frames of ours are
	carried  int         // length of the longest buffer of a frame that was acknowledged
	blocked  bool        // nothing new can leave before an acknowledgement
	probe    bool        // a probe is due
	aloneAt  ack.Instant // when an acknowledgement last left by itself
	quick    bool        // they do not wait for company: none came
	mute     bool        // none can leave by itself: the span of ids is used up
	holding  ack.Instant
	rested   ack.Instant // when the last thing posted was done
	session  session
	proof    proof
	gap      gap
	reached  ack.Wide    // newest id heard from the peer
	counters Counters    // of the sending half
	times    *Times      // likewise; nil: none yet
	received Counters    // of the receiving half, as of its last batch
	open     int         // likewise: incomplete incoming transactions
	held     int         // likewise: bytes kept because of them
	heardAt  ack.Instant // likewise: when its last frame came
	err      error       // why nothing can be posted
	closed   bool
	done     chan struct{}
	drained  chan struct{} // not nil while someone waits for posted to become empty
	room     chan struct{} // one token when the queue has room again
}

func (e *Endpoint) newConn(p Peer, now ack.Instant) (*Conn, error) {
	prof, err := e.cfg.profileFor(p)
	if err != nil {
		return nil, err
	}
	if p.As == 0 {
		p.As = e.cfg.ID
	}
	c := &Conn{ep: e, peer: p, to: &p.Addr, profile: prof, lives: 1, done: make(chan struct{}), room: make(chan struct{}, 1)}
	limit := min(e.cfg.MTU, e.transport.MTU(p.Addr))
	if prof.MaxFrame != 0 {
		limit = min(limit, prof.MaxFrame)
	}
	// A whole number of 8 bytes behind the header, so that all full frames are
	// equally long.
	c.frameMax = frame.HeaderSize + (limit-frame.HeaderSize)&^7
	room := c.frameMax - frame.HeaderSize - frame.MessageHeaderSize
	if room < max(prof.Chunk, prof.Final) {
		return nil, fmt.Errorf("dgrdma: connect peer %d: frames of %d bytes have no room for data", p.ID, limit)
	}
	c.leastChunk = room &^ (prof.Chunk - 1)
	c.size.Store(p.Size)
	c.entry.Init(c)
	c.rx.init(c)
	c.start(now)
	return c, nil
}

// view takes the peer's view of the memory. Connections that are made and not used
// have none.
func (c *Conn) view() {
	c.memory = c.ep.memory
	if each, ok := c.memory.(PerConn); ok {
		c.memory = each.For(c)
	}
	c.placed, _ = c.memory.(Placed)
}

// start begins the sending half. Guarded by mu.
func (c *Conn) start(now ack.Instant) {
	p := &c.profile
	c.ctl = c.ep.cfg.controller(p, c.frameMax)
	first := ack.Wide(p.FirstFrame)
	if first == 0 {
		first = ack.Wide(c.ep.cfg.Entropy())
		if !p.Session {
			first = p.begin(first)
		}
	}
	c.startSender(now, first)
	c.due.Init(p.AckEvery, p.AckDelay)
	c.acking = p.Acks == AckRepeat || p.Acks == AckOnce
	c.nextTxn = p.FirstTransaction
	if p.Session {
		c.newLife(now)
	} else if c.nextTxn == 0 {
		c.nextTxn = c.ep.cfg.Entropy()
	}
}

func (c *Conn) startSender(now ack.Instant, first ack.Wide) {
	p := &c.profile
	c.proof = proof{from: first.Seq(), given: !p.Cumulative || p.FirstFrame == 0}
	c.sender.Init(now, ack.SenderConfig{
		First: first, Window: p.Window, Span: p.Span,
		MinRTO: p.MinTimeout, MaxRTO: min(time.Second, c.ep.cfg.GiveUp/10), AckDelay: p.PeerAckDelay,
		GiveUp: c.ep.cfg.GiveUp, Cumulative: p.Cumulative, FreshAlone: p.FreshAlone, SlotTable: p.SlotTable,
	}, c.ctl)
}

// Name returns the peer's id and address.
func (c *Conn) Name() PeerName {
	if c == nil {
		return PeerName{}
	}
	return PeerName{c.peer.ID, c.peer.Addr}
}

// Peer returns what the connection was made with.
func (c *Conn) Peer() Peer {
	if c == nil {
		return Peer{}
	}
	p := c.peer
	p.Size = c.size.Load()
	return p
}

// Memory returns what the peer writes into: the endpoint's, or what its PerConn
// returned for this connection.
func (c *Conn) Memory() Memory {
	if c == nil {
		return nil
	}
	return c.memory
}

// Profile returns what is assumed of the peer.
func (c *Conn) Profile() Profile {
	if c == nil {
		return Profile{}
	}
	return c.profile
}

// dst is the destination id our frames carry.
func (c *Conn) dst() frame.EndpointID {
	if c.profile.OwnDestination {
		return c.peer.As
	}
	return c.peer.ID
}

func (c *Conn) peerError(op string, err error) error {
	return &PeerError{ID: c.peer.ID, Addr: c.peer.Addr, Op: op, Err: err}
}

// finish takes a transaction out of the list. Guarded by mu.
func (c *Conn) finish(t *Transaction, fin *finished, err error) {
	c.posted.remove(t)
	if err == nil {
		c.counters.TransactionsDone++
	} else {
		c.counters.TransactionsLost++
	}
	fin.add(t, err)
}

// settled accounts for an acknowledged frame. Guarded by mu.
func (c *Conn) settled(now ack.Instant, q frame.Seq, fin *finished) {
	o := &c.out[int(q)&(len(c.out)-1)]
	for t, n := o.first, o.n; n > 0; n-- {
		next := t.next
		if t.frames--; t.frames == 0 && t.complete {
			c.took().Completion.note(now.Sub(t.begunAt))
			c.finish(t, fin, nil)
		}
		t = next
	}
	c.carried = max(c.carried, int(o.length))
	c.discard(o)
}

// restAfter is how long nothing was posted when a connection gives back the
// memory that it has for frames in flight. Arbitrary: rare beside what it saves.
const restAfter = time.Second

// resting reports whether there is such memory and nothing is posted.
func (c *Conn) resting() bool {
	return c.posted.n == 0 && c.sender.InFlight() == 0 && len(c.out) > 0
}

// rest gives it back. Guarded by mu.
func (c *Conn) rest() {
	c.sender.Shrink()
	c.out, c.slab, c.leaving = nil, nil, nil
}

// abandon fails everything that is posted and forgets what is in flight, so that
// something else can be posted. Guarded by mu.
func (c *Conn) abandon(now ack.Instant, fin *finished, err error) {
	// Anew, for the old one would wait for what was in flight.
	ctl := c.ep.cfg.controller(&c.profile, c.frameMax)
	c.forfeit(fin, err)
	c.ctl = ctl
	c.startSender(now, c.sender.NextWide())
}

// forfeit fails everything that is posted and forgets what is in flight. It calls
// nothing that is not ours. Guarded by mu.
func (c *Conn) forfeit(fin *finished, err error) {
	if c.lives++; c.lives == anyLife {
		c.lives++
	}
	for c.posted.head != nil {
		c.finish(c.posted.head, fin, err)
	}
	for i := range c.out {
		if c.out[i].slab != nil {
			c.discard(&c.out[i])
		}
	}
	c.probe = false // blocked was for what is in flight, and holds only while something is
	c.roomMade()
}

// fail ends the connection. Guarded by mu.
func (c *Conn) fail(now ack.Instant, fin *finished, err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.down.Store(true)
	c.forfeit(fin, err)
	c.startSender(now, c.sender.NextWide())
	c.ep.sched.Disarm(&c.entry)
	close(c.done)
	c.giveBack()
}

// revive makes a connection usable again that had failed. Guarded by mu.
func (c *Conn) revive(now ack.Instant) {
	c.err = nil
	c.down.Store(false)
	c.done = make(chan struct{})
	first := c.sender.NextWide()
	c.start(now)
	c.startSender(now, first)
}

// Reset begins anew with a peer that is down, or that was started again:
// everything pending fails with ErrReset, and what the peer sent so far is
// forgotten. Frame ids start at first where the peer's profile asks for a fixed
// first id (0: that id); peers of our own kind need none and are told.
func (c *Conn) Reset(first frame.Seq) error {
	if c == nil {
		return ErrNil
	}
	whole := false
	defer func() {
		if !whole {
			c.ep.sched.Break(ErrCallback)
		}
	}()
	err := c.reset(first)
	whole = true
	if err != nil {
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
	if c.closed || c.ep.draining.Load() {
		return ErrClosed
	}
	if c.err == nil {
		c.abandon(now, &fin, c.peerError("transactions in flight", ErrReset))
		next := c.sender.NextWide()
		c.start(now)
		c.startSender(now, next)
	} else {
		c.revive(now)
	}
	if !c.profile.Session && (first != 0 || c.profile.FirstFrame != 0) {
		if first == 0 {
			first = c.profile.FirstFrame
		}
		c.startSender(now, ack.Wide(first))
	}
	c.due.Init(c.profile.AckEvery, c.profile.AckDelay)
	c.epoch.Add(1)
	c.giveBack()
	c.queue()
	return nil
}

// Done returns a channel that is closed when the connection failed or was
// closed. After Reset there is a new one.
func (c *Conn) Done() <-chan struct{} {
	if c == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// Err returns why the connection failed, or nil.
func (c *Conn) Err() error {
	if c == nil {
		return ErrNil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection: everything pending fails with ErrClosed, and the
// peer's frames are refused from now on. The endpoint stays. Close does not
// wait for callbacks that run, and may be called from Done.
func (c *Conn) Close() error {
	if c == nil {
		return ErrNil
	}
	c.mu.Lock()
	c.closed = true
	var fin finished
	c.fail(c.ep.now(), &fin, ErrClosed)
	// Before anybody else sees that nothing is posted any more: Endpoint.Close would
	// return without these.
	c.ep.finish(&fin)
	c.mu.Unlock()
	c.ep.forget(c)
	return nil
}
