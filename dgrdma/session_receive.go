package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// sessionReceiving is the receiving half of a connection to a session peer. It belongs to the holder of the receive lock.
type sessionReceiving struct {
	*receiving
	peer   *sessionPeer
	frames session.Receiver
	up     bool // the peer has shown that it has the session
}

var _ receivingKind = (*sessionReceiving)(nil)

func (n *sessionReceiving) introduced() bool { return n.frames.HasSession() }

// receive implements receivingKind: of v1.07 a session peer sends frames of the handshake alone.
func (n *sessionReceiving) receive(now ack.Instant, f *frame.Frame) (why Reason, applied bool) {
	n.begin(now)
	h, ok := n.handshakeOf(f)
	switch {
	case !ok:
		return n.drop(RefusedNoSession), false
	case lostChecksum(f, &h, n.checked(), n.peer.tx.terms.mayCheck):
		return n.refused(RefusedChecksum, h.Sender, nil), false
	}
	return n.peer.handshake(now, f, h), false
}

func (n *sessionReceiving) follow(ack.Instant, *frame.Frame, []transport.Datagram, *transport.Addr) int {
	return 0
}

// forget implements receivingKind.
func (n *sessionReceiving) forget() {
	n.up = false
	n.frames.Forget()
}

// dropBatch implements receivingKind.
func (n *sessionReceiving) dropBatch() { n.frames.DropBatch() }

// start begins a session.
func (n *sessionReceiving) start(local, remote session.Epoch, checks bool) {
	n.clear()
	n.followed = n.resets.Load()
	n.told = true // its owner tells
	n.frames.Begin(local, remote, checks)
}

// receiveSession acts on a frame of a session, and reports whether it holds data that was applied.
func (n *sessionReceiving) receiveSession(now ack.Instant, f *frame.SessionFrame) (why Reason, applied bool) {
	n.begin(now)
	switch n.frames.Judge(f, n.nextID.Load(), n.checked()) {
	case session.OtherTag:
		return n.stray(f), false
	case session.Resets:
		return n.reset(now, f), false
	case session.NoChecksum:
		return n.refused(RefusedChecksum, 0, nil), false
	case session.AckOfUnsent:
		return n.drop(RefusedAckOfUnsent), false
	}
	n.livedAt = now
	if !n.up {
		if n.rises(now); n.resets.Load() != n.followed {
			return n.drop(RefusedDown), false // the program ended the session when it heard that the peer is there
		}
	}
	switch f.Control {
	case frame.NoControl, frame.ControlBell:
		return n.data(now, f)
	case frame.ControlBye:
		y, _ := f.Bye()
		in := session.Frame{Kind: session.Bye, Sender: session.Epoch(y.Sender), Receiver: session.Epoch(y.Receiver)}
		return n.peer.acts(now, &in, spoken{}), false
	}
	n.frames.Note(f)
	return RefusedNone, false
}

// rises notes that the peer has shown that it has the session.
func (n *sessionReceiving) rises(now ack.Instant) {
	p := n.peer
	p.conn.mu.Lock()
	o := p.tx.m.Arrived(p.tx.at(now))
	event := p.applyOutput(now, &o, spoken{}, nil)
	p.tx.wake(now)
	p.conn.mu.Unlock()
	n.up = true
	p.conn.report(event)
}

// data acts on a frame with messages, or on a bell.
func (n *sessionReceiving) data(now ack.Instant, f *frame.SessionFrame) (why Reason, applied bool) {
	n.frames.Acknowledges(f.Ack)
	switch n.frames.Check(now, f) {
	case ack.Copied:
		n.counters.Duplicates++
		return RefusedNone, false
	case ack.Beyond:
		c := f.Cursor()
		c.Next()
		return n.refused(RefusedForeign, c.Msg.Txn, nil), false
	}
	if f.Control == frame.NoControl {
		if why, txn, err := n.apply(now, f); why != RefusedNone {
			return n.refused(why, txn, err), false
		}
		applied = true
	}
	n.frames.Arrived(now, f)
	n.noteMarks(1)
	return RefusedNone, applied
}

// apply applies the messages of a frame, all of them or none.
func (n *sessionReceiving) apply(now ack.Instant, f *frame.SessionFrame) (why Reason, txn uint32, err error) {
	d := n.scratch
	d.cursor = f.Cursor()
	d.pendingWrites = d.pendingWrites[:0]
	m := &d.nextWrite().msg
	d.cursor.Into(m)
	if m.Type == frame.TypeServices && m.Count == 0 {
		list, ok := frame.ParseServices(d.cursor.Data)
		if !ok && m.Len > 0 || m.More {
			return RefusedMalformed, m.Txn, nil
		}
		n.learns(now, peerServices{list, ok})
		return RefusedNone, 0, nil
	}
	if why, txn, err := n.check(); why != RefusedNone {
		return why, txn, err
	}
	n.applyChecked(0)
	return RefusedNone, 0, nil
}

// learns takes the list of the peer's services, which may be longer than the last one. A peer whose frames have no room for a list says
// so, and what is posted to it goes to its memory.
func (n *sessionReceiving) learns(now ack.Instant, said peerServices) {
	var fin finished
	p := n.peer
	defer p.conn.ep.finish(&fin)
	p.conn.mu.Lock()
	tx := &p.tx
	if tx.learn(said) {
		tx.refuse(&fin)
	}
	tx.ready = tx.open()
	tx.wake(now)
	p.conn.mu.Unlock()
	p.conn.ep.tell(&fin)
}

// followSession applies the frames that go on where f ended, which was applied just now, and returns how many.
func (n *sessionReceiving) followSession(now ack.Instant, f *frame.SessionFrame, rest []transport.Datagram, from *transport.Addr) (count int) {
	d := n.scratch
	m := &d.pendingWrites[0].msg
	in := n.open.Find(m.Txn)
	if len(d.pendingWrites) > 1 || in == nil || m.Len == 0 || !n.frames.IsNewest(f.ID) {
		return 0
	}
	h := f.SessionHeader
	h.Copy, h.Checks = 0, d.checksum
	d.sessionRun.Begin(&h, m)
	count = n.followRun(&d.sessionRun, m, rest, from, int(m.Count-in.Got)-1)
	if count > 0 {
		n.countFollowed(in, count)
		n.frames.ArrivedRun(now, count)
		n.noteMarks(count)
	}
	return count
}
