package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
)

// endedBy returns the error of a connection whose session, or attempt, ended and is followed by none.
func (n *sessionSending) endedBy(why session.Why) error {
	switch why {
	case session.PeerClosed:
		return n.terms.peerError("", ErrPeerClosed)
	case session.OtherID:
		return n.wrongID(n.other)
	case session.PeerRestarted:
		return n.terms.peerError("", ErrPeerRestarted)
	}
	return n.givenUp("asking for a session")
}

// applyOutput acts on what the machine says after a frame of the peer. Guarded by the connection's mutex, with the receive lock.
func (p *sessionPeer) applyOutput(now ack.Instant, o *session.Output, s spoken, fin *finished) (n news) {
	tx, rx := &p.tx, &p.rx
	ended := o.Ended != session.NotEnded
	if ended || tx.m.State < session.Confirming {
		rx.clear() // of the session, if there was one
		rx.followed = rx.resets.Load()
		tx.ready = false
		tx.frames.DropAck()
	}
	switch {
	case ended && tx.m.State <= session.Down:
		n.why = tx.endedBy(o.Ended)
		p.conn.giveUp(now, fin, n.why)
	case ended:
		tx.abandon(now, fin, tx.terms.peerError("transactions in flight", ErrPeerRestarted))
		tx.restarts = true
		tx.since = now
	}
	if o.Begins {
		p.begin(now, s, fin)
	}
	if o.Begins || o.Reply.Kind == session.Ack {
		rx.livedAt, tx.heard.lived = now, now // the peer has shown that it is there
	}
	if o.Rises {
		rx.up = true
		tx.sent.TakeUntaken()
		tx.welcomed = noWelcome // a WELCOME so far began this session, or begins none
		n.event = PeerUp
		if tx.restarts {
			n.event = PeerRestarted
			tx.counters.Restarts++
		}
		tx.restarts = true // the next one
	}
	tx.bell = tx.bell || o.Bell && !tx.rings()
	tx.reply(o.Reply, s)
	return n
}
