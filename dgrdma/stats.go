package dgrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// ConnStats is a snapshot of one connection.
type ConnStats struct {
	Counters
	Peer        PeerName
	As          EndpointID // our id towards it
	Profile     string     // its name
	Learned     bool       // from what the peer sent, and not connected since
	Memory      uint64     // bytes of the peer's; 0: not known
	FrameSize   int        // bytes of a full frame, as far as is known: see FramesShortened
	FrameWindow int        // frames that may wait for acknowledgement
	RTT, MinRTT time.Duration
	LatestRTT   time.Duration
	Window      int             // bytes the controller allows in flight
	Congestion  CongestionState // what it does
	ECN         string          // marks of congestion on what is sent: testing, on, paused, failed; empty: there are none
	InFlight    int             // frames waiting for acknowledgement
	OnWire      int             // bytes of those of them that are not taken for lost
	Lost        int             // of those, frames that will be sent again
	Queued      int             // transactions posted and not done
	Open        int             // incoming transactions that are incomplete
	OpenMemory  int             // bytes kept because of them, see Config.OpenMemory
	Silent      time.Duration   // since the last frame came; negative: none has
	Life        uint32          // see Conn.Life
	Mine        uint32          // our epoch of the session; 0: there is none
	Theirs      uint32          // the peer's epoch of the session; 0: there is none
	Checksum    bool            // frames have one, see Config.Checksum: the peer wants that, too
	Down        bool
	Err         error // why it is down
}

// Ready reports whether data can flow: the connection is not down, and the peer
// has a session with this one, if it is of a kind that has sessions.
func (s *ConnStats) Ready() bool { return !s.Down && (s.Mine == 0 || s.Theirs != 0) }

// Stats is a snapshot of an endpoint.
type Stats struct {
	Counters  // of all connections, closed ones included, and of frames that belong to none
	Times     // of all connections, closed ones included
	Peers     int
	Transport TransportStats
	Age       time.Duration // since it was opened
	Closed    bool
	Err       error // why the transport failed
}

// Stats returns a snapshot of the connection's counters.
func (c *Conn) Stats() ConnStats {
	now := c.ep.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.statsAt(now)
}

// statsAt is Stats at that time, under c.mu.
func (c *Conn) statsAt(now ack.Instant) ConnStats {
	tx := &c.tx
	mine, theirs := tx.kind.epochs()
	s := ConnStats{
		Counters: tx.counters, Peer: c.name(), As: c.peer.As, Profile: c.profile.Name, Learned: c.learned.Load(), Memory: c.size.Load(),
		FrameSize: int(c.frameSize.Load()), FrameWindow: c.profile.Window,
		RTT: tx.unacked.RTT().Smoothed(), MinRTT: tx.unacked.RTT().Min(now), LatestRTT: tx.unacked.RTT().Latest(), Window: tx.ctl.Window(),
		InFlight: tx.unacked.InFlight(), OnWire: tx.unacked.Bytes(), ECN: tx.unacked.Marks().String(), Lost: tx.unacked.Lost(), Queued: tx.posted.Len(), Open: tx.heard.open, OpenMemory: tx.heard.held,
		Silent: -1, Life: uint32(tx.epoch), Mine: uint32(mine), Theirs: uint32(theirs), Checksum: tx.checks, Down: tx.err != nil, Err: tx.err,
	}
	if ctl, ok := tx.ctl.(ack.Inspected); ok {
		s.Congestion = ctl.Inspect()
	}
	if tx.heard.counters.FramesReceived > 0 {
		s.Silent = max(now.Sub(tx.heard.at), 0)
	}
	s.Counters.Add(&tx.heard.counters)
	return s
}

// addTo adds what the connection counted, under Conn.mu.
func (s *sending) addTo(all *Counters, times *Times) {
	all.Add(&s.counters)
	all.Add(&s.heard.counters)
	if s.times != nil {
		times.add(s.times)
	}
}

// Stats returns a snapshot of all counters.
func (e *Endpoint) Stats() Stats {
	return e.inspect(nil)
}

// Inspect returns a snapshot of all counters, and of each connection at the same
// moment: those of closed connections are the difference.
func (e *Endpoint) Inspect() (Stats, []ConnStats) {
	each := make([]ConnStats, 0, e.peers.len()) // not under the lock
	s := e.inspect(&each)
	return s, each
}

// inspect adds up all connections, and puts each into a list if there is one. No
// connection ends in that time, so that none is counted twice or not at all.
func (e *Endpoint) inspect(each *[]ConnStats) Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	conns, now := e.peers.all(), e.now()
	s := Stats{Counters: e.gone, Times: e.goneTimes, Peers: len(conns), Age: time.Duration(now), Closed: e.closed, Err: e.sched.Err()}
	for _, c := range conns {
		c.mu.Lock()
		c.tx.addTo(&s.Counters, &s.Times)
		if each != nil {
			*each = append(*each, c.statsAt(now))
		}
		c.mu.Unlock()
	}
	s.Transport = e.transport.Stats()
	return s
}
