package udp

import (
	"net/netip"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
)

// crowd keeps peers out of the socket's buffer whom the kernel is still looking
// for. It holds back what is sent to a neighbour that does not answer, for
// seconds, and counts it as the socket's: a few such peers fill a buffer of the
// usual size, and nothing could be sent to anyone. So whenever the buffer is not
// empty enough, whoever is to be sent to is looked up.
type crowd struct {
	given   int  // bytes given to the kernel since the last look
	crowded bool // a good part of the buffer was in use then
	known   map[toHost]*neighbour
	now     time.Time // of the last look, if it was crowded
}

// toHost is a way to a host: from which address of ours may make a difference.
type toHost struct {
	host transport.Addr
	from netip.Addr
}

type neighbour struct {
	state rtnl.Neighbour
	asked time.Time
}

const (
	// The buffer is looked at whenever an eighth of it may have been filled, and is
	// crowded when a quarter is in use. With one message that is too much, a good
	// part of the least usual buffer (208 KiB) stays free, and what is in it makes
	// itself known within an eighth.
	lookEvery = 8
	crowdedAt = 4
	// messageOverhead is about what the kernel counts for a datagram beside its bytes.
	messageOverhead = 768
	// askAgain is how long an answer is good for.
	askAgain = 50 * time.Millisecond
	// mostKnown bounds what is remembered; who is forgotten is looked up again.
	mostKnown = 256
)

// lookAtCrowd looks at the buffer if it is time.
func (c *Conn) lookAtCrowd() {
	s := &c.sending
	if s.given <= c.buffers.Send/lookEvery && !s.crowded || c.routes == nil {
		return
	}
	if !c.socket.Hold() {
		return // the descriptor may be somebody else's
	}
	s.given, s.crowded = 0, c.socket.Queued() > c.buffers.Send/crowdedAt
	c.socket.Release()
	if s.crowded {
		s.now = time.Now()
	}
}

// leaves reports whether what is sent to a peer leaves this machine, as far as the
// kernel knows.
func (c *Conn) leaves(to *transport.Addr) bool {
	s := &c.sending
	way := toHost{to.Host(), c.from(to)} // strangers have any number of ports
	n := s.known[way]
	if n == nil {
		if s.known == nil || len(s.known) >= mostKnown {
			s.known = make(map[toHost]*neighbour)
		}
		n = new(neighbour)
		s.known[way] = n
	}
	if n.state == rtnl.Unknown || s.now.Sub(n.asked) >= askAgain {
		n.state, n.asked = rtnl.Unknown, s.now
		if way, err := c.routes.WayTo(way.from, to.AddrPort().Addr()); err == nil {
			n.state = c.routes.Neighbour(way)
		}
		if n.state == rtnl.Unknown {
			// One message has the kernel look for him; then he is asked for again.
			s.given = c.buffers.Send
		}
	}
	return n.state != rtnl.Sought
}
