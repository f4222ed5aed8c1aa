package dgrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// sessionPeer is a connection to a peer of our own kind, which has sessions: see package session. A frame
// of a session names both epochs, and its id is never used again in that session. So each frame is applied once, and what the
// network held back from an earlier session changes nothing.
type sessionPeer struct {
	conn *Conn
	tx   sessionSending
	rx   sessionReceiving
}

func newSessionPeer(c *Conn, learned bool) *sessionPeer {
	p := &sessionPeer{conn: c}
	p.tx = sessionSending{sending: &c.tx, peer: p, learns: learned, welcomed: noWelcome}
	p.tx.frames.Init(c.peer.As, c.peer.ID)
	p.tx.sent = p.tx.frames.Flight()
	if c.ep.epochs.welcomed(c.ep.now()) {
		p.tx.welcomed = unlisted // as far as is known
	}
	p.rx = sessionReceiving{receiving: &c.rx, peer: p}
	p.rx.frames.Init(&c.ep.acks, &c.ep.ahead)
	p.tx.m.KeepRemote = c.cfg.KeepOldLife
	c.tx.kind, c.tx.wire, c.tx.unacked = &p.tx, sessionWire{&p.tx}, p.tx.sent
	c.tx.inFlight.Follow(c.tx.unacked)
	c.rx.kind = &p.rx
	c.tx.terms.emptyIndex = frame.NotHandshake
	c.session = p
	return p
}

func (p *sessionPeer) isPeer() bool { return true }

// gone implements kind: what else ends a session is acted on with the frame that says so.
func (p *sessionPeer) gone() error {
	if p.tx.err != nil || !p.tx.sent.Lied() {
		return nil
	}
	return p.tx.terms.peerError("", ErrFalseAck)
}

// exchange implements kind.
func (p *sessionPeer) exchange(now ack.Instant) (missed int) {
	longest, confirmed := p.rx.frames.TakeSizes()
	p.tx.came = max(p.tx.came, longest)
	if confirmed > 0 {
		p.tx.sizeArrived(now, confirmed)
	}
	return 0
}

// handshake acts on a frame of the handshake, with the receive lock. It needs both halves in the
// middle of a batch: what follows it is of the session that it begins.
func (p *sessionPeer) handshake(now ack.Instant, f *frame.Frame, h frame.Handshake) Reason {
	in := handshakeOf(h)
	if h.Kind == frame.HandshakeRefused {
		r, ok := frame.RefusalOf(f)
		if !ok {
			return p.rx.drop(RefusedForeign)
		}
		in.Refusal = session.Refusal(r.Why)
		if in.Refusal == session.WrongID && p.noteWrongID(h, r.ID) {
			return RefusedNone
		}
	}
	return p.acts(now, &in, spoken{peerServices: said(f), brief: f.Size() < frame.ListedSize, checks: h.Checks, trip: time.Duration(f.Trip()) * time.Microsecond})
}

// handshakeOf returns a frame of the handshake as package session has it.
func handshakeOf(h frame.Handshake) session.Frame {
	kinds := [...]session.Kind{
		frame.HandshakeHello: session.Hello, frame.HandshakeWelcome: session.Welcome, frame.HandshakeConfirm: session.Confirm,
		frame.HandshakeReject: session.Reject, frame.HandshakeRefused: session.Refused,
	}
	return session.Frame{Kind: kinds[h.Kind], Sender: session.Epoch(h.Sender), Receiver: session.Epoch(h.Receiver), Check: h.Check}
}

// noteWrongID notes that the endpoint at the peer's address says to have another id. It reports whether that is no reason to end the
// attempt so far: the peer may yet connect under the id that was asked for.
func (p *sessionPeer) noteWrongID(h frame.Handshake, id frame.EndpointID) (waits bool) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	if m := &p.tx.m; m.State != session.Asking || session.Epoch(h.Receiver) != m.Local {
		return false
	}
	p.tx.other = id
	return p.besides(id)
}

// Refusal says why the peer takes no session, as it said last: the error is [ErrRefused]. nil: there is a session, or the
// peer did not say so.
func (c *Conn) Refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tx.kind.refusal()
}

// spoken is what a frame says that begins or ends a session.
type spoken struct {
	peerServices
	brief  bool          // it is too short for a list of services
	checks bool          // its sender's frames have checksums
	trip   time.Duration // how long a round trip takes, at most, as its sender says; 0: it does not
}

// acts has the machine act on a frame, with the receive lock.
func (p *sessionPeer) acts(now ack.Instant, in *session.Frame, s spoken) Reason {
	var fin finished
	e := p.conn.ep
	defer e.finish(&fin) // what is left, if a callback panics
	p.settles(now, &fin)
	e.tell(&fin) // what was acknowledged is done before the peer is gone
	why, n := p.receives(now, in, s, &fin)
	if n.why == nil {
		e.tell(&fin) // what failed has failed before the peer is there again
	}
	p.conn.report(n)
	e.tell(&fin)
	return why
}

// settles applies what this batch has acknowledged so far: the session that it is of may end now.
func (p *sessionPeer) settles(now ack.Instant, fin *finished) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	if tx := &p.tx; tx.err == nil && p.conn.resets.Load() == p.rx.followed {
		p.acknowledge(now, fin)
	}
	p.rx.dropBatch()
}

func (p *sessionPeer) receives(now ack.Instant, in *session.Frame, s spoken, fin *finished) (why Reason, n news) {
	c, tx := p.conn, &p.tx
	c.mu.Lock()
	defer c.mu.Unlock()
	if tx.closed || tx.reporting {
		return p.rx.drop(RefusedDown), n
	}
	if in.Kind == session.Bye && !tx.open() {
		return RefusedNone, n // this side has just ended the session, too
	}
	if in.Kind == session.Reset && int32(in.ID-tx.sent.Oldest()) < 0 {
		return p.rx.drop(RefusedForeign), n // it does not answer what waits for an answer: a RESET is hard to guess
	}
	var o session.Output
	x := tx.taken
	tx.taken = nil
	c.ep.epochs.with(c.key(), now, func(e session.Epochs) {
		m := &tx.m
		if m.State == session.None && x != nil {
			o, x.m.KeepRemote = x.o, m.KeepRemote
			*m = x.m
			return
		}
		if m.State != session.None {
			if o = m.Receive(tx.at(now), e, in); o.Untaken {
				tx.sent.Untaken(in.ID, in.Copy)
			}
			return
		}
		begun, answer, takes := session.Answer(tx.at(now), e, in, session.NoUnknown)
		if o = answer; takes {
			begun.KeepRemote = m.KeepRemote
			*m = begun
		}
	})
	if o.Foreign {
		why = p.rx.drop(RefusedForeign)
	}
	n = p.applyOutput(now, &o, s, fin)
	if in.Kind == session.Refused {
		tx.refused(fin)
	}
	tx.wake(now)
	return why, n
}

// begin begins a session. Guarded by the connection's mutex, with the receive lock.
func (p *sessionPeer) begin(now ack.Instant, s spoken, fin *finished) {
	tx, rx := &p.tx, &p.rx
	if tx.err != nil {
		tx.reopen()
		tx.ctl = tx.terms.cfg.controller(&tx.terms.profile, tx.terms.most, tx.terms.routed)
	}
	tx.beginSession(now, s)
	tx.refuse(fin)
	rx.start(tx.m.Local, tx.m.Remote, tx.checks)
}
