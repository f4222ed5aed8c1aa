package dgrdma

import (
	"sync/atomic"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// terms are what both halves of a connection know and read without a lock: what it was
// made with, which never changes, and a few words that change by themselves.
type terms struct {
	cfg        *Config        // the endpoint's
	headroom   int            // before each frame, for the transport
	header     int            // length of the header of a frame with messages
	offers     *localServices // the endpoint's
	peer       Peer
	to         *transport.Addr // peer.Addr, shared by all connections to it
	profile    Profile
	most       int    // length of a full frame, if the way carries what its first part does
	sure       int    // and of one that it surely carries
	narrow     int    // and of one that every way carries
	short      int    // and of one of a transaction that begins before it is known what the way carries
	emptyIndex uint16 // index of a message without data
	marks      bool   // the transport sends marks of congestion (ECN), and tells them
	mayCheck   bool   // frames have a checksum if the peer's have
	routed     bool   // a router may be on the way: nothing says that a round trip is short

	channels channels // of the endpoint's services

	guest     atomic.Bool   // may not write into the memory: see Endpoint.Welcome
	learned   atomic.Bool   // from what the peer sent, and not connected since
	size      atomic.Uint64 // of the peer's memory; 0: not known
	down      atomic.Bool   // the sending half has an error, or had one that is being told
	nextID    atomic.Uint32 // the id after those of the last batch that was sent, an ack.Wide
	resets    atomic.Int32  // how often the receiving half has to forget everything
	frameSize atomic.Int32  // length of a full frame, as far as is known: what is posted is measured by it
}

// mostFar is how many frames may wait for acknowledgement on a far path. They count from the oldest one, which waits for four round trips when three
// copies of it are lost: so long lasts a window for 300 ms of 100 Mbit/s, with half of a queue as long. It takes no more memory where few are in flight.
const mostFar = ack.MostAhead - 1

// farWindow returns how many frames may wait on a far path. Who chose a window has that everywhere.
func (t *terms) farWindow() int {
	if t.cfg.Window != 0 {
		return t.profile.Window
	}
	return max(t.profile.Window, mostFar)
}

func (t *terms) name() PeerName { return t.peer.name() }

func (t *terms) key() peerKey { return peerKey{ids{t.peer.As, t.peer.ID}, t.peer.Addr} }

// label sets what all our frames carry.
func (t *terms) label(h *frame.Header) {
	h.Dst, h.Src = t.profile.Destination(t.peer.As, t.peer.ID), t.peer.As
}

func (t *terms) peerError(op string, err error) error {
	return &PeerError{ID: t.peer.ID, Addr: t.peer.Addr, Op: op, Err: err}
}
