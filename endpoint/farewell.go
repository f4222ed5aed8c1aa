package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// acquainted are two lives that know each other.
type acquainted struct{ mine, theirs incarnation }

func (a acquainted) goodbye() frame.Hello {
	return frame.Hello{Life: uint32(a.mine), Peer: uint32(a.theirs), Leaves: true}
}

// acquainted returns which two lives know each other, or last did: behind a Reset the peer
// still believes those.
func (n *nativeSending) acquainted() acquainted {
	if n.theirs == unknown {
		return n.was
	}
	return acquainted{n.mine, n.theirs}
}

// goodbye implements sendingKind. A life of the peer that believes what it was offered would insist on that.
func (n *nativeSending) goodbye(b *batch, now ack.Instant) {
	if known := n.acquainted(); known != (acquainted{}) {
		n.sendHello(b, now, known.goodbye())
	}
	if n.offering() && !b.full() {
		n.sendHello(b, now, acquainted{n.later, n.asked}.goodbye())
		n.asked = unknown
	}
}

// offering implements sendingKind.
func (n *nativeSending) offering() bool { return n.later != unknown && n.asked != unknown }
