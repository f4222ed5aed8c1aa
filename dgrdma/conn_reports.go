package dgrdma

import "github.com/dgrdma/dgrdma/ack"

// news is what is found under the lock of a connection, and told without.
type news struct {
	missed int       // frames of the peer that are given up
	size   int       // of frames, if they are shorter from now on
	why    error     // the peer is given up, if it is
	event  EventKind // of a session; 0: none
}

// report tells the program and the services.
func (c *Conn) report(n news) {
	if n.missed > 0 {
		c.event(Event{Kind: FramesMissed, Frames: n.missed})
	}
	if n.size > 0 {
		c.event(Event{Kind: FramesShortened, Size: n.size})
	}
	if n.why != nil {
		c.event(Event{Kind: PeerDown, Err: n.why})
		c.reported()
	}
	if n.event != 0 {
		c.event(Event{Kind: n.event})
	}
}

// reported lets the peer come back that was given up, of which the program and the services have heard by now. A service that
// heard before that the peer is back would take that for what is over.
func (c *Conn) reported() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx.reporting = false
	c.down.Store(c.tx.err != nil)
}

// giveUp ends the connection to a peer that is gone, of which the caller tells the program and the services.
// Guarded by mu.
func (c *Conn) giveUp(now ack.Instant, fin *finished, why error) {
	c.fail(now, fin, why)
	c.tx.reporting = true
}
