package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/frame"
)

// aliveAt returns when the peer is asked next whether it is there: by a bell, unless something is in flight anyway. A
// peer whose list of services something waits for may have given this side up.
func (n *sessionSending) aliveAt() ack.Instant {
	silence := n.terms.cfg.KeepAlive
	if n.awaitsList() {
		silence = min(helloMost, n.terms.cfg.GiveUp)
	}
	if silence == 0 || !n.open() || n.sent.InFlight() > 0 {
		return run.Never
	}
	return max(n.heard.lived, n.since).Add(silence)
}

// sendBell sends a frame without messages, which is acknowledged: a peer that has the session not any more says so.
func (n *sessionSending) sendBell(b *outgoing.Batch, now ack.Instant) {
	buf := n.bellFrame(b)
	n.bellID, n.belled = n.sent.Track(now, len(buf)-b.Headroom()), true
	n.sendKept(b, n.bellID, buf, frame.ControlBell)
}

// sendWithheld sends a bell under the id that was withheld.
func (n *sessionSending) sendWithheld(b *outgoing.Batch, now ack.Instant) {
	buf := n.bellFrame(b)
	n.sendKept(b, n.sent.TrackWithheld(now, len(buf)-b.Headroom()), buf, frame.ControlBell)
}

// bellFrame returns the memory for a bell.
func (n *sessionSending) bellFrame(b *outgoing.Batch) []byte {
	return n.inFlight.Little(b.Headroom() + frame.SessionHeaderSize + 1)
}

// rings reports whether a bell is under way that left since the peer has the session.
func (n *sessionSending) rings() bool {
	return n.belled && n.sent.Waits(n.bellID) && int32(n.bellID-n.m.UpID) >= 0
}
