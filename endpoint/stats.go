package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// ConnStats is a snapshot of one connection.
type ConnStats struct {
	Counters
	Peer        PeerName
	As          frame.EndpointID // our id towards it
	Profile     string           // its name
	Learned     bool             // from what the peer sent, and not connected since
	Memory      uint64           // bytes of the peer's; 0: not known
	FrameSize   int              // bytes of a full frame
	FrameWindow int              // frames that may wait for acknowledgement
	RTT, MinRTT time.Duration
	Window      int           // bytes the controller allows in flight
	InFlight    int           // frames waiting for acknowledgement
	Lost        int           // of those, frames that will be sent again
	Queued      int           // transactions posted and not done
	Open        int           // incoming transactions that are incomplete
	OpenMemory  int           // bytes kept because of them, see Config.OpenMemory
	Silent      time.Duration // since the last frame came; negative: none has
	Life        uint32        // see Conn.Life
	Mine        uint32        // our life as the peer is told; 0: it takes no introductions
	Theirs      uint32        // the peer's life; 0: it has not introduced itself
	Down        bool
	Err         error // why it is down
}

// Ready reports whether data can flow: the connection is not down, and the peer
// has introduced itself, if it is one that does.
func (s *ConnStats) Ready() bool { return !s.Down && (s.Mine == 0 || s.Theirs != 0) }

// Stats is a snapshot of an endpoint.
type Stats struct {
	Counters  // of all connections, closed ones included, and of frames that belong to none
	Times     // of all connections, closed ones included
	Peers     int
	Transport transport.Stats
	Age       time.Duration // since it was opened
	Closed    bool
	Err       error // why the transport failed
}

// Stats returns a snapshot of the connection's counters.
func (c *Conn) Stats() ConnStats {
	if c == nil {
		return ConnStats{Silent: -1, Down: true, Err: ErrNil}
	}
	now := c.ep.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ConnStats{
		Counters: c.counters, Peer: c.Name(), As: c.peer.As, Profile: c.profile.Name, Learned: c.learned.Load(), Memory: c.size.Load(),
		FrameSize: c.frameMax, FrameWindow: c.profile.Window,
		RTT: c.sender.RTT().Smoothed(), MinRTT: c.sender.RTT().Min(now), Window: c.ctl.Window(),
		InFlight: c.sender.InFlight(), Lost: c.sender.Lost(), Queued: c.posted.n, Open: c.open, OpenMemory: c.held,
		Silent: -1, Life: c.lives, Mine: c.session.mine, Theirs: c.session.theirs, Down: c.err != nil, Err: c.err,
	}
	if c.received.FramesReceived > 0 {
		s.Silent = max(now.Sub(c.heardAt), 0)
	}
	s.Counters.Add(&c.received)
	return s
}

// Stats returns a snapshot of all counters.
func (e *Endpoint) Stats() Stats {
	if e == nil {
		return Stats{Closed: true, Err: ErrNil}
	}
	return e.inspect(nil)
}

// Inspect returns a snapshot of all counters, and of each connection at the same
// moment: those of closed connections are the difference.
func (e *Endpoint) Inspect() (Stats, []ConnStats) {
	if e == nil {
		return e.Stats(), nil
	}
	each := make([]ConnStats, 0, e.peers.len()) // not under the lock
	s := e.inspect(&each)
	return s, each
}

// inspect adds up all connections, and puts each into a list if there is one. No
// connection ends meanwhile, so that none is counted twice or not at all.
func (e *Endpoint) inspect(each *[]ConnStats) Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	conns := e.peers.append(nil, nil)
	s := Stats{Counters: e.gone, Times: e.goneTimes, Peers: len(conns), Age: time.Duration(e.now()), Closed: e.closed, Err: e.sched.Err()}
	for _, c := range conns {
		cs := c.Stats()
		s.Counters.Add(&cs.Counters)
		c.addTimes(&s.Times)
		if each != nil {
			*each = append(*each, cs)
		}
	}
	s.Transport = e.transport.Stats()
	return s
}
