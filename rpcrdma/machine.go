package rpcrdma

import (
	"errors"
	"fmt"
	"time"
)

// Side is which end of a connection this one is.
type Side uint8

// Sides. The client speaks first, makes the forward Calls, and answers the reverse ones.
const (
	Client Side = iota
	Server
)

// Config is what a [Machine] is told of its connection. Numbers that are not within their bounds count as these.
type Config struct {
	Side            Side
	Lowest, Highest uint32 // versions that may be spoken

	// Window is how many messages the peer may have on their way to here, from MinWindow to MaxWindow, and how many of
	// its Calls are in work at once. At a client of version 1 it is how many Calls may be out.
	Window int
	// Reverse is how many Calls of the server to the client may be out, up to MaxWindow. 0 is none.
	Reverse int
	// Sends is the length of the send queue.
	Sends int

	// SendSize and ReceiveSize are the lengths of the longest Send and of all receives. Receives are there
	// before the peer has said anything, and are never shorter than MinReceive: Linux's server answers with more
	// than it was told to.
	SendSize, ReceiveSize int
	Local, Peer           Private // what both sides said at connection set-up
	ORD                   int     // Reads that may be outstanding at the peer

	MaxCall, MaxReply int // the longest ones taken, unreduced

	First    time.Duration // for the peer's first message
	PartTime time.Duration // for all parts of a message, and for a Read
	// GiveUp is for how long the Reply to a cancelled Call is waited for, or 0 for no limit. Then the connection ends: until the Reply, the
	// peer may still use the memory that the Call gave it. A server waits without limit for the Reply to a Call that gave none.
	GiveUp time.Duration
}

// Bounds of a Config.
const (
	MinWindow  = 4
	MaxWindow  = 64
	MinReceive = 4096
)

// bounded returns the Config with numbers that are within bounds.
func (c Config) bounded() Config {
	c.Window = min(max(c.Window, MinWindow), MaxWindow)
	c.Reverse = min(max(c.Reverse, 0), MaxWindow)
	c.ReceiveSize = max(c.ReceiveSize, MinReceive)
	c.SendSize = max(c.SendSize, DefaultThreshold1)
	return c
}

// Posted returns how many receives must be posted before the connection is there, and whether or not it is of version 2.
// A server needs one for the first message and one to spare: as long as it has said nothing, no more may come.
func (c *Config) Posted() int {
	if c.Side == Server {
		return 2
	}
	b := c.bounded()
	return b.Window + 1 + b.Reverse
}

// Receives returns the most receives that are ever posted at once.
func (c *Config) Receives() int {
	b := c.bounded()
	return 2*b.Window + b.Reverse + 1
}

// Phase is how far a connection is set up.
type Phase uint8

// Phases.
const (
	Opening  Phase = iota // a server that has heard nothing
	Asked                 // a client that has sent one message, of version 2, and has heard nothing
	Settling              // version 2: a side has not sent all of its properties
	Open                  // Calls go
	Closed                // nothing goes; what comes is dropped
)

// Errors of connections.
var (
	// ErrLost is that of Calls whose connection ended. See [Call.Sent].
	ErrLost = errors.New("the RPC-over-RDMA connection was lost")
	// ErrVersion is the reason of an end: the peer has no version of this side.
	ErrVersion = errors.New("the peer speaks no version of RPC-over-RDMA that may be spoken here")
	// ErrFallBack is the reason of an end: the peer does not take part in version 2, and version 1 may go on a new connection.
	ErrFallBack = errors.New("the peer does not answer in version 2 of RPC-over-RDMA: try version 1")
	// ErrSilent is the reason of an end: the peer did not say what it must say first.
	ErrSilent = errors.New("the peer has not begun RPC-over-RDMA in time")
	// ErrProtocol is the reason of an end: the peer broke a rule that the connection cannot do without.
	ErrProtocol = errors.New("the peer does not follow RPC-over-RDMA")
)

// Machine is one connection. It has no lock, clock, goroutine or socket: it is told what happened, and [Machine.Next]
// says what is to be done about it. What is told never blocks and never calls the program.
type Machine struct {
	cfg    Config
	memory Memory
	pool   Pool

	phase   Phase
	version uint32 // 0 as long as it is not known
	since   time.Time
	settle  settlement

	decoder *Decoder
	header  Header // that is being received
	credits credits
	posted  int // receives that are there

	req     requester
	rsp     responder
	out     outbox
	actions actions
	works   works

	malformed malformed
	unusable  uint64
	short     bool // a buffer was missing since the last Tick
}

// New returns the machine of a connection that was set up. Receives are posted: see [Config.Posted].
func New(c *Config, memory Memory, pool Pool, now time.Time) *Machine {
	m := &Machine{cfg: c.bounded(), memory: memory, pool: pool, since: now, posted: c.Posted()}
	m.decoder = NewDecoder(DefaultLimits())
	m.decoder.Lowest, m.decoder.Highest = c.Lowest, c.Highest
	m.req.open()
	m.rsp.open(m)
	m.begin()
	return m
}

// Version returns the version that is spoken, or 0 as long as it is not known.
func (m *Machine) Version() uint32 { return m.version }

// Terms are what both sides of a connection keep to.
type Terms struct {
	Version  uint32 // of RPC-over-RDMA, or 0 as long as it is not known
	Calls    int    // of this side at once: its credits
	Send     int    // length of the longest message to the peer that goes by one Send: an inline threshold
	Received int    // the same, of those from the peer
}

// Terms returns what the peer has granted and said so far.
func (m *Machine) Terms() Terms {
	t := Terms{Version: m.version, Send: m.threshold(), Received: m.replyThreshold()}
	if m.credits != nil {
		t.Calls = m.credits.calls()
	}
	return t
}

// Phase returns how far the connection is set up.
func (m *Machine) Phase() Phase { return m.phase }

// Received tells that a message of n octets came. The buffer is the machine's from then on. Invalidated says
// that the message withdrew memory of this side, of tag stag.
func (m *Machine) Received(now time.Time, b *Buffer, n int, invalidated bool, stag uint32) {
	m.posted--
	m.rsp.now = now
	if m.phase == Closed {
		m.pool.Put(b)
		return
	}
	m.receive(now, b, b.B[:n], invalidated, stag)
}

// Completed tells that a work is complete, and with it all before it.
func (m *Machine) Completed(now time.Time, serial uint64) {
	m.rsp.now = now
	for m.works.done <= serial && m.works.done < m.works.next {
		w := m.works.take()
		if w.slot != nil {
			m.pool.Put(w.slot)
		}
		if w.in != nil {
			m.rsp.completed(m, now, w)
		}
	}
}

// Tick tells the time, and returns when it wants to be told again: zero if it does not.
func (m *Machine) Tick(now time.Time) (next time.Time) {
	if m.phase == Closed {
		return next
	}
	if m.phase < Open && m.cfg.First > 0 {
		next = m.since.Add(m.cfg.First)
		if !now.Before(next) {
			m.endOpening()
			return time.Time{}
		}
	}
	if m.short {
		m.short = false
		next = sooner(next, now.Add(retryTime))
	}
	next = sooner(next, m.req.tick(m, now))
	return sooner(next, m.rsp.tick(m, now))
}

// sooner returns the earlier of two times, of which a zero one is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Lost tells that the connection has ended, and that nobody touches its memory any more. All Calls return, and
// all memory is withdrawn. The error is the cause, or nil. Lost returns it, as [ErrFallBack] if the peer has answered nothing in version 2.
func (m *Machine) Lost(err error) error {
	if m.phase == Asked && m.cfg.Lowest == Version1 { // RPCN-04
		if err == nil {
			err = ErrFallBack
		} else {
			err = fmt.Errorf("%w: %w", ErrFallBack, err)
		}
	}
	m.phase = Closed
	for m.works.done < m.works.next {
		if w := m.works.take(); w.slot != nil {
			m.pool.Put(w.slot)
		}
	}
	m.out.lost()
	m.req.lost(m, err)
	m.rsp.lost(m, err)
	return err
}

// close ends the connection, for a reason. Calls return by Lost, when the peer can no longer use their memory.
func (m *Machine) close(reason error) {
	if m.phase == Closed {
		return
	}
	m.phase = Closed
	m.actions.add(Action{Kind: ActClose, Err: reason})
}

// malformed counts messages of the peer that cannot be used.
type malformed struct {
	since time.Time
	n     int
}

// A connection has maxMalformed in malformedTime. Both numbers are arbitrary.
const (
	maxMalformed  = 16
	malformedTime = time.Minute
)

// countMalformed counts a message that cannot be used. The connection ends if there are too many.
func (m *Machine) countMalformed(now time.Time) {
	m.unusable++
	if now.Sub(m.malformed.since) >= malformedTime {
		m.malformed = malformed{since: now}
	}
	if m.malformed.n++; m.malformed.n > maxMalformed {
		m.close(ErrProtocol)
	}
}
