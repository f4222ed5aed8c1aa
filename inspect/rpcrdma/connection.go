package rpcrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// mostTried is how many Sends of a connection are looked at until one is of RPC-over-RDMA. Arbitrary.
const mostTried = 16

// Connection is one that carries RPC-over-RDMA, or may.
type Connection struct {
	IWARP *iwarp.Connection
	// Client is the side that makes forward Calls, if Known.
	Client tcp.Way
	Known  bool
	Sides  [2]Side
	Found  [Whats]Found
	Errors []Reported // in the order in which each was seen first

	certain bool // it carries RPC-over-RDMA
	strange bool // it does not
	tried   int
	pair    *pair
	fell    bool // that it falls back was found
}

// Reported is an error that a side has reported, by its code.
type Reported struct {
	Code string
	Found
}

// Side is what one side of a connection did.
type Side struct {
	Version uint32 // of its latest message with one that is known; 0: there is none
	Calls   int
	// InUse is the most Calls of this side that waited at once, and Grant what the other side had then granted at most: 0 if that is not known.
	InUse, Grant int
	// Full is how long this side had no credit left, and FullRecord where that began first.
	Full       time.Duration
	FullRecord int
	Messages   int

	message message
	parts   [2]part // of a Call, and of a Reply: both directions may have one under way
	room    room
	seen    bool // something of what it sent was read
	holes   int  // pieces of its stream that are not in the capture, or could not be read
	late    int  // events that were read after later ones
	pulled  []pull

	grant      uint32 // of the other side, the most so far
	granted    bool
	properties codec.Properties
	sent2      int    // messages of version 2
	first2     int    // record of the first one
	props      uint32 // XID of its latest properties
	granted2   uint64 // credits of version 2 that this side has given
	unasked    []orphan
	use        use
}

// pull is an RDMA Read that is under way of the Call at Position 0.
type pull struct {
	from *segment
	stag uint32
	to   uint64 // of the sink
	size uint64
	at   uint64 // in the segment
}

// mostPulled is how many of these are followed of a side. Arbitrary.
const mostPulled = 64

// orphan is a Reply for which there is no Call yet: the other direction may be read late.
type orphan struct {
	xid    uint32
	record int
}

// mostUnasked is how many of these are remembered. Arbitrary.
const mostUnasked = 64

// said returns the private data of a side, if its frame of set-up is in the capture.
func (c *Connection) said(w tcp.Way) (p codec.Private, ok bool) {
	s := c.IWARP.Reply
	if w == c.IWARP.Initiator {
		s = c.IWARP.Request
	}
	if !c.IWARP.Known || s == nil || s.Absent > 0 {
		return p, false
	}
	return codec.ParsePrivate(s.Private), true
}

// threshold returns the length of the longest Send of a side. It is 0 if that is not known.
func (c *Connection) threshold(w tcp.Way, version uint32) int {
	if version == codec.Version2 {
		local, peer := &c.Sides[w], &c.Sides[1-w]
		switch {
		case !c.begun():
			return 0
		case local.sent2 == 0 && w == c.Client:
			return codec.FirstThreshold2
		}
		return codec.Threshold2(&local.properties, &peer.properties)
	}
	local, ok := c.said(w)
	peer, too := c.said(1 - w)
	if !ok || !too {
		return 0
	}
	send, _ := codec.Thresholds1(local, peer)
	return send
}

// begun reports whether the connection was captured from its beginning, and nothing of it is missing.
func (c *Connection) begun() bool {
	return c.IWARP.Request != nil && c.IWARP.Reply != nil && c.Sides[0].holes == 0 && c.Sides[1].holes == 0
}

// port is that of NFS over RDMA.
const port = 20049

// roles learns which side is the client.
func (c *Connection) roles(caller tcp.Way, isCall bool) {
	switch ends := &c.IWARP.TCP.Ends; {
	case c.Known:
	case c.IWARP.Known:
		c.Client, c.Known = c.IWARP.Initiator, true
	case ends[0].Port() == port || ends[1].Port() == port:
		c.Known = true
		if c.Client = 0; ends[0].Port() == port {
			c.Client = 1
		}
	case isCall:
		c.Client, c.Known = caller, true
	}
}

// Waiting returns how many Calls of a side wait for their Reply.
func (c *Connection) Waiting(w tcp.Way) int { return len(c.Sides[w].room.calls) }
