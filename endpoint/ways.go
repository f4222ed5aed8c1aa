package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// ways are how peers of a kind are treated. They are chosen when an endpoint meets a
// stranger, and when a connection is made.
type ways struct {
	// meet returns the connection to a stranger, if its frame is reason enough for one.
	meet func(e *Endpoint, now ack.Instant, p Peer, f *frame.Frame) *Conn
	// connect gives both halves of a connection what they need. told is what the peer was
	// told while it was a stranger, or nil.
	connect func(c *Conn, told *cookie) kind
}

func waysOf(p *Profile) ways {
	if p.Session {
		return ways{(*Endpoint).meetNative, connectNative}
	}
	return ways{(*Endpoint).meetForeign, connectForeign}
}

// connectPeer makes a connection to a peer one of its kind.
func connectPeer(told *cookie) func(*Conn) kind {
	return func(c *Conn) kind { return waysOf(&c.profile).connect(c, told) }
}

func connectNative(c *Conn, told *cookie) kind {
	return newNative(&c.tx, &c.rx, &c.mu, c.ep, told)
}

func connectForeign(c *Conn, _ *cookie) kind { return newForeign(&c.tx, &c.rx, c.ep) }
