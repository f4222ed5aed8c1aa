package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
)

// waits reports whether the peer is given up if it does not answer.
func (n *sessionSending) waits() bool {
	return n.m.State == session.Asking && (n.posted.Len() > 0 || n.terms.cfg.KeepAlive > 0) || n.awaitsList()
}

// awaitsList reports whether something is posted that waits for the list of the peer's services. A peer that acknowledges frames, and has
// none that says so, would hold it up for ever.
func (n *sessionSending) awaitsList() bool { return n.open() && !n.ready && n.posted.Len() > 0 }

func (n *sessionSending) giveUpAt() ack.Instant {
	at := n.since.Add(n.terms.cfg.GiveUp)
	if n.posted.Len() == 0 {
		at = at.Add(n.terms.cfg.KeepAlive)
	}
	return at
}

// overdue implements sendingKind.
func (n *sessionSending) overdue(now, heard ack.Instant) (missed int, why error) {
	if err := n.overdueSize(now, heard); err != nil {
		return 0, err
	}
	if n.tooNarrow(now) {
		return 0, n.dead()
	}
	switch {
	case !n.waits() || now < n.giveUpAt():
		return 0, nil
	case n.other != 0:
		return 0, n.wrongID(n.other)
	case n.refusal() != nil:
		return 0, n.refusal()
	case n.open():
		return 0, n.givenUp("waiting for the list of its services")
	case n.silent():
		return 0, n.givenUp("asking for a session")
	}
	return 0, n.givenUp("asking for a session (a peer of another kind needs its profile)")
}

// refusal implements sendingKind.
func (n *sessionSending) refusal() error {
	if !n.m.Refused || refusals[n.m.Refusal] == nil {
		return nil
	}
	return n.terms.peerError("asking for a session", refusals[n.m.Refusal])
}
