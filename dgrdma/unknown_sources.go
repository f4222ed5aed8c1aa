package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

const _ = uint(outgoing.MaxBatch - admission.MostAnswers) // they are one batch

// countUnknown counts what came and belongs to no connection.
func (e *Endpoint) countUnknown(d *transport.Datagram) {
	e.unknown.FramesReceived++
	e.unknown.BytesReceived += uint64(len(d.Data))
}

// refuseUnknown counts why a frame of an unknown source was refused, and tells the program.
func (e *Endpoint) refuseUnknown(why Reason, who PeerName) {
	e.unknown.Refused[why]++
	if e.cfg.OnEvent != nil || e.cfg.Logger != nil {
		e.event(Event{Kind: FrameRefused, Peer: who, Reason: why})
	}
}

// admissionReasons are the reasons of the gate as an endpoint counts them.
var admissionReasons = [admission.Reasons]Reason{
	admission.WrongDestination: RefusedDestination, admission.UnknownSource: RefusedSource, admission.Sealed: RefusedSealed,
	admission.NoChecksum: RefusedChecksum, admission.NoSession: RefusedNoSession, admission.NoRoom: RefusedNoRoom,
}

// question is the frame at hand, as far as it bounds what is answered.
func (e *Endpoint) question(size int) admission.Question {
	return admission.Question{Size: size, Checked: e.checksum}
}

// meet acts on a frame of v1.07 of an unknown source. It returns the connection that it makes, which acts on the frame; nil: none.
func (e *Endpoint) meet(now ack.Instant, f *frame.Frame, d *transport.Datagram) (c *Conn) {
	p := Peer{ID: f.Src, Addr: d.From}
	known := f.Dst != e.cfg.ID && e.peers.find(peerKey{ids{e.cfg.ID, f.Src}, d.From}) != nil
	switch v := e.gate.Frame(f, d.From, e.question(f.Size()), known); v.Do {
	case admission.LearnForeign:
		c = e.learn(now, p)
	case admission.AnswerHello:
		c = e.meetSession(now, f, v.Handshake, p)
	case admission.TellID:
		if f.AsksIdentity() && e.welcomeUnnamed(now, f, v.Handshake, p) {
			break
		}
		of := session.Epoch(v.Handshake.Sender)
		o := session.Frame{Kind: session.Refused, Sender: of, Receiver: of, Refusal: session.WrongID}
		if told := e.answerUnknown(peerKey{ids{f.Dst, f.Src}, d.From}, o, f.Size()); told && f.Dst == 0 {
			break // it asked for the id
		}
		fallthrough
	default:
		e.refuseUnknown(admissionReasons[v.Why], p.name())
	}
	if c == nil {
		e.countUnknown(d)
	}
	return c
}

// meetSession answers a frame of the handshake, or makes the connection to a peer that confirms what it was told.
func (e *Endpoint) meetSession(now ack.Instant, f *frame.Frame, h frame.Handshake, p Peer) (c *Conn) {
	if lostChecksum(f, &h, e.checksum, e.mayCheck()) {
		e.refuseUnknown(RefusedChecksum, p.name())
		return nil
	}
	key := peerKey{ids{f.Dst, f.Src}, p.Addr}
	in := handshakeOf(h)
	no, refusal := e.accepts(now, p.Addr), session.NoRoom
	if no == admission.UnknownSource {
		refusal = session.NoUnknown
	}
	var x taken
	takes := false
	e.epochs.with(key, now, func(all session.Epochs) {
		x.m, x.o, takes = session.Answer(session.At{Now: now, Takes: no == admission.NotRefused}, all, &in, refusal)
	})
	if takes {
		if c = e.learn(now, p); c != nil { // which acts on the frame
			x := x // so that only this one is allocated
			c.mu.Lock()
			c.session.tx.taken = &x
			c.mu.Unlock()
		}
		return c
	}
	why := RefusedNoSession
	if x.o.Reply.Kind == session.Refused {
		why = admissionReasons[no]
	}
	if e.answerUnknown(key, x.o.Reply, f.Size()) && x.o.Reply.Kind == session.Welcome {
		e.epochs.welcomes(now)
	} else {
		e.refuseUnknown(why, p.name())
	}
	return nil
}

// welcomeUnnamed answers a HELLO for whoever is here, which would be welcome under the endpoint's own id, as it would be answered then, and says who is here.
// It reports whether it did: else the source hears the id, and asks again under that.
func (e *Endpoint) welcomeUnnamed(now ack.Instant, f *frame.Frame, h frame.Handshake, p Peer) (answered bool) {
	if lostChecksum(f, &h, e.checksum, e.mayCheck()) || !e.localServices.to(!e.gate.MayWrite()).HasRoom() {
		return false
	}
	key := peerKey{ids{e.cfg.ID, f.Src}, p.Addr}
	w, ok := e.welcomeOf(now, key, session.Epoch(h.Sender))
	if !ok || !e.queueAnswer(peerKey{ids{0, f.Src}, p.Addr}, admission.Answer{Handshake: onWire(w), Identifies: true}, f.Size()) {
		return false
	}
	e.epochs.welcomes(now)
	return true
}

// welcomeOf returns the WELCOME to a HELLO of initiator, if there is one as things are.
func (e *Endpoint) welcomeOf(now ack.Instant, key peerKey, initiator session.Epoch) (w session.Frame, ok bool) {
	var m session.Machine
	if c := e.peers.find(key); c == nil {
		if e.accepts(now, key.addr) != admission.NotRefused {
			return w, false
		}
	} else if c.session == nil {
		return w, false
	} else {
		c.mu.Lock()
		defer c.mu.Unlock()
		tx := &c.session.tx
		if tx.closed || tx.reporting {
			return w, false
		}
		tx.welcomed = unlisted // it lists the services for a guest, which this peer may not be: it is told the list again
		m = tx.m
	}
	e.epochs.with(key, now, func(all session.Epochs) { w, ok = m.Welcomes(all, initiator) })
	return w, ok
}

// meetFrame acts on a frame of a session of an unknown source.
func (e *Endpoint) meetFrame(f *frame.SessionFrame, from transport.Addr) {
	v := e.gate.SessionFrame(f)
	if v.Do == admission.AnswerReset {
		e.answerReset(peerKey{ids{f.Dst, f.Src}, from}, f)
	}
	e.refuseUnknown(admissionReasons[v.Why], PeerName{f.Src, from})
}

// accepts returns why no peer would be learned at that address, if none would.
func (e *Endpoint) accepts(now ack.Instant, at transport.Addr) admission.Reason {
	switch _, s := e.peers.room(now, at); {
	case !e.gate.Accepts():
		return admission.UnknownSource
	case s == admission.NoPlace:
		return admission.NoRoom
	}
	return admission.NotRefused
}

// learn makes the connection to a peer that was not configured, if there is room,
// which is found out before anything is made.
func (e *Endpoint) learn(now ack.Instant, p Peer) *Conn {
	evicted, s := e.peers.room(now, p.Addr)
	switch s {
	case admission.NoPlace:
		e.refuseUnknown(RefusedNoRoom, p.name())
		return nil
	case admission.AfterEviction:
		evicted.end() // it may be there after all: what it sends is answered
		e.unknown.Dismissed++
	}
	c, err := e.newConn(p, now, connectPeer(true))
	if err == nil {
		c.learned.Store(true)
		c.guest.Store(!e.gate.MayWrite())
		c.rx.held.Share()
		c, err = e.enter(c)
	}
	if err != nil {
		e.refuseUnknown(RefusedSource, p.name()) // the endpoint is about to be closed
	}
	return c // nil, if there is an error
}

// learnedPeer is a connection as the places of learned peers see it, under the lock of the table and the receive lock.
type learnedPeer struct{ *Conn }

func (c learnedPeer) Place() *admission.Place { return &c.place }

func (c learnedPeer) Standing() admission.Standing {
	return admission.Standing{LivedAt: c.rx.livedAt, Down: c.down.Load(), InSession: c.rx.kind.introduced()}
}

// answerUnknown has an unknown source answered at the end of the batch with a frame of the handshake, if it is one. size is that of its frame.
func (e *Endpoint) answerUnknown(k peerKey, f session.Frame, size int) (answered bool) {
	if f.Kind == session.NoFrame {
		return false
	}
	return e.queueAnswer(k, admission.Answer{Handshake: onWire(f), Why: uint8(f.Refusal)}, size)
}

// answerReset has the sender of a frame told that there is no such session.
func (e *Endpoint) answerReset(k peerKey, f *frame.SessionFrame) {
	h := f.SessionHeader
	h.Checks = false // which the checksum sets
	e.queueAnswer(k, admission.Answer{Reset: h}, f.Size())
}

func (e *Endpoint) queueAnswer(k peerKey, a admission.Answer, size int) (answered bool) {
	a.Local, a.Remote, a.To = k.local, k.remote, k.addr
	switch e.replies.Add(a, e.question(size)) {
	case admission.Added:
		e.unknown.Challenges++
	case admission.Again:
		e.unknown.Duplicates++
	case admission.Full:
		e.unknown.Unanswered++
		return false
	case admission.TooBig:
		return false
	}
	return true
}

// Reply implements run.Engine: it puts the answers to unknown sources into a batch of their own. It is called with both locks.
func (e engine) Reply() {
	b := &e.batch
	b.Mark(transport.NotECT)
	bytes := 0
	all := e.replies.All()
	for i := range all {
		a := &all[i]
		buf := b.Small()
		var own frame.Refusal
		if a.Handshake.Kind == frame.HandshakeRefused || a.Identifies {
			own = frame.Refusal{ID: e.cfg.ID, Size: e.Size()}
		}
		buf = buf[:b.Headroom()+a.Put(buf[b.Headroom():], own, e.localServices.to(!e.gate.MayWrite()))]
		if a.Handshake.Checks {
			buf = addChecksum(buf, b.Headroom())
		}
		to := a.To // what Outgoing.To points to never changes, and the replies will
		b.Add(&to, buf, nil, nil)
		bytes += len(buf) - b.Headroom()
		if t := e.cfg.Trace; t != nil && t.FrameSent != nil {
			t.FrameSent(PeerName{a.Remote, a.To}, buf[b.Headroom():], false)
		}
	}
	e.mu.Lock()
	e.gone.FramesSent += uint64(len(all))
	e.gone.BytesSent += uint64(bytes)
	e.mu.Unlock()
	e.replies.Clear()
	e.Flush()
	if e.sealed != nil {
		e.transmit(e.sealed.TakeAnswers())
	}
}
