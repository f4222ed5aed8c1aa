package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// reply has a frame of the handshake leave.
func (n *sessionSending) reply(f session.Frame, s spoken) {
	switch f.Kind {
	case session.NoFrame:
	case session.Ack:
		n.frames.AckNow()
	case session.Bye:
		n.bye = f
	default:
		n.replies.Add(session.Reply{Frame: f, Brief: s.brief, Checks: s.checks})
	}
}

// handshakeKinds are the frames of the handshake as package frame has them.
var handshakeKinds = [...]frame.HandshakeKind{
	session.Hello: frame.HandshakeHello, session.Welcome: frame.HandshakeWelcome, session.Confirm: frame.HandshakeConfirm,
	session.Reject: frame.HandshakeReject, session.Refused: frame.HandshakeRefused,
}

// onWire returns a frame of the handshake as package frame has it.
func onWire(f session.Frame) frame.Handshake {
	return frame.Handshake{Kind: handshakeKinds[f.Kind], Sender: uint32(f.Sender), Receiver: uint32(f.Receiver), Check: f.Check}
}

// sendHandshake sends a frame of the handshake.
func (n *sessionSending) sendHandshake(b *outgoing.Batch, now ack.Instant, r session.Reply) {
	h := onWire(r.Frame)
	var list *frame.Services
	switch r.Kind {
	case session.Hello:
		h.Checks = n.terms.mayCheck
		list = n.terms.offered()
		if n.hellos++; n.hellos == 1 {
			n.helloAt = now
		}
	case session.Welcome:
		h.Checks = n.terms.mayCheck && r.Checks
		told := unlisted
		if !r.Brief {
			if list = n.terms.offered(); list != nil {
				told = len(list.All())
			}
		}
		n.welcomed = min(n.welcomed, told)
		n.peer.conn.ep.epochs.welcomes(now)
	case session.Confirm:
		h.Checks = n.checks
		if list = n.terms.offered(); list != nil {
			told := *list
			told.Known = len(n.list.All())
			list = &told
		}
	case session.Reject:
		h.Checks = n.terms.mayCheck && r.Checks
	}
	buf := n.terms.handshake(b, h, list)
	if r.Kind == session.Confirm && list != nil && list.HasRoom() && n.trip > 0 {
		frame.PutTrip(buf[b.Headroom()+frame.HandshakeSize:], uint32(max(n.trip.Microseconds(), 1)))
	}
	b.Mark(transport.NotECT) // it is v1.07
	n.putAs(b, buf, nil, false, h.Checks)
	b.Mark(n.mark())
}

// offered returns what a frame of the handshake says of our services; nil: there is no room.
func (t *terms) offered() *frame.Services {
	if t.most < frame.ListedSize {
		return nil
	}
	return t.offers.to(t.guest.Load())
}

// handshake makes a frame of the handshake, which says what is offered, unless that is nil.
func (t *terms) handshake(b *outgoing.Batch, h frame.Handshake, offered *frame.Services) []byte {
	var l frame.Header
	t.label(&l)
	buf := b.Small()
	return buf[:b.Headroom()+h.PutWith(buf[b.Headroom():], l.Dst, l.Src, offered)]
}
