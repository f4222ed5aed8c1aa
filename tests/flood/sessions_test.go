package flood

import (
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// strangerID is the id of the proven peer that a stranger plays.
const strangerID = 77

// helloSize is the length of a handshake frame with a list of services.
const helloSize = frame.HandshakeSize + frame.ServicesSize

// begun is a session with the server, as the peer has it that a stranger plays.
type begun struct {
	id     frame.EndpointID
	local  session.Epoch // of the stranger
	remote session.Epoch // of the server
	check  uint32
	sent   uint32 // the newest frame id
}

// anyEpoch returns an epoch, drawn as all else of strangers.
func (s *stranger) anyEpoch() uint32 { return s.rnd.Uint32() | 1 }

// shake makes a datagram of the handshake, with a list of no services.
func (s *stranger) shake(id frame.EndpointID, h frame.Handshake) []byte {
	b := make([]byte, prefix+helloSize)
	h.Put(b[prefix:], serverID, id)
	var list frame.Services
	list.Put(b[prefix+frame.HandshakeSize:])
	return b
}

// header returns that of a frame of the session, which acknowledges nothing.
func (b *begun) header(id uint32) frame.SessionHeader {
	return frame.SessionHeader{Dst: serverID, Src: b.id, ID: id, Tag: session.Tag(b.remote, b.local), Ack: uint32(b.remote)}
}

// next returns the id of the next frame.
func (b *begun) next() uint32 { b.sent++; return b.sent }

// data makes a datagram of the session with these messages.
func data(h frame.SessionHeader, messages ...message) []byte {
	b := make([]byte, 1472)
	var w frame.Writer
	w.InitAfter(b[prefix:], frame.SessionHeaderSize)
	add(&w, messages)
	h.Put(b[prefix:])
	return b[:prefix+w.Len()]
}

// control makes a datagram of a control frame that says nothing more: a bell, or a RESET that quotes a frame with that header.
func control(h frame.SessionHeader, of frame.Control) []byte {
	h.Control = of
	b := make([]byte, prefix+28) // as Ethernet pads it
	h.Put(b[prefix:])
	return b
}

// acknowledgement makes a datagram of an ACK with as many ranges as there may be.
func acknowledgement(h frame.SessionHeader) []byte {
	b := make([]byte, prefix+frame.MostSessionAck)
	ranges := make([]frame.Range, frame.MostRanges)
	for i := range ranges {
		ranges[i] = frame.Range{First: h.Ack + uint32(2+200*i), Count: 100}
	}
	return b[:prefix+frame.PutSessionAckFrame(b[prefix:], &h, true, 1, 0, ranges)]
}

// bye makes a datagram that ends the session of these epochs.
func bye(h frame.SessionHeader, sender, receiver uint32) []byte {
	b := make([]byte, prefix+64)
	return b[:prefix+frame.PutBye(b[prefix:], &h, frame.Bye{Sender: sender, Receiver: receiver})]
}

// probe makes a datagram that asks whether such long ones arrive.
func probe(h frame.SessionHeader) []byte {
	b := make([]byte, 1472)
	return b[:prefix+frame.PutProbe(b[prefix:], &h, len(b)-prefix)]
}

// any returns the header of a frame of no session.
func (s *stranger) any() frame.SessionHeader {
	return frame.SessionHeader{Dst: serverID, Src: s.anyID(), ID: s.rnd.Uint32(), Tag: s.rnd.Uint32(), Ack: s.rnd.Uint32()}
}

// introduce becomes a peer under an id, from the first address.
func (s *stranger) introduce(t testing.TB, id frame.EndpointID) {
	t.Helper()
	s.own = s.introduceFrom(t, 0, id)
}

// introduceFrom begins a session, and returns when the server has it.
func (s *stranger) introduceFrom(t testing.TB, socket int, id frame.EndpointID) *begun {
	t.Helper()
	c := s.sockets[socket]
	b := &begun{id: id, local: session.Epoch(s.anyEpoch())}
	b.sent = uint32(b.local)
	s.txn = s.rnd.Uint32()
	for range 50 {
		if b.remote == 0 {
			c.Write(s.shake(id, frame.Handshake{Kind: frame.HandshakeHello, Sender: uint32(b.local)}))
			b.welcomed(c, 100*time.Millisecond)
			continue
		}
		c.Write(s.shake(id, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: uint32(b.local), Receiver: uint32(b.remote), Check: b.check}))
		if b.acknowledged(c, 100*time.Millisecond) {
			return b
		}
	}
	t.Fatal("the server did not answer")
	return nil
}

// frames calls f with each frame that comes from the server, until f says that this was it, or for so long.
func frames(c *net.UDPConn, wait time.Duration, f func(b []byte) bool) bool {
	in := make([]byte, 2048)
	c.SetReadDeadline(time.Now().Add(wait))
	for {
		n, err := c.Read(in)
		if err != nil {
			return false
		}
		if n > prefix && f(in[prefix:n]) {
			return true
		}
	}
}

// welcomed waits for the answer to a HELLO. What is for others that use the socket is passed over.
func (b *begun) welcomed(c *net.UDPConn, wait time.Duration) bool {
	return frames(c, wait, func(in []byte) bool {
		f, err := frame.Parse(in)
		if err != nil || frame.IsSession(in) || !f.HasMessages() {
			return false
		}
		cur := f.Cursor()
		cur.Next()
		h, ok := frame.HandshakeOf(&f, &cur.Msg)
		if !ok || h.Kind != frame.HandshakeWelcome || h.Receiver != uint32(b.local) {
			return false
		}
		b.remote, b.check = session.Epoch(h.Sender), h.Check
		return true
	})
}

// acknowledged waits for the ACK that answers a CONFIRM.
func (b *begun) acknowledged(c *net.UDPConn, wait time.Duration) bool {
	return frames(c, wait, func(in []byte) bool {
		h, ok := frame.SessionHeaderOf(in)
		return ok && h.Tag == session.Tag(b.local, b.remote)
	})
}

// again has the peer begin another session: it confirms the last WELCOME that came, or else asks for one.
func (s *stranger) again() []byte {
	b := s.own
	if len(s.sockets) > 0 && b.welcomed(s.sockets[0], 20*time.Microsecond) {
		return s.shake(b.id, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: uint32(b.local), Receiver: uint32(b.remote), Check: b.check})
	}
	b.local = session.Epoch(s.anyEpoch())
	return s.shake(b.id, frame.Handshake{Kind: frame.HandshakeHello, Sender: uint32(b.local)})
}

// outlives checks that the session that a stranger began is there after a flood, and that none is where it began others.
func (s *stranger) outlives(t testing.TB, srv *server, k kind) {
	t.Helper()
	before := srv.state().Peer
	if k.steps != (before.Restarts > 0) {
		t.Errorf("%d sessions followed the first one", before.Restarts)
	}
	if k.steps {
		return
	}
	for range 100 { // the server's socket may be full of the flood
		s.txn++
		s.sockets[0].Write(data(s.own.header(s.own.next()), word(s.txn, 0, frame.NotHandshake)))
		if srv.state().Peer.Completions > before.Completions {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	after := srv.state().Peer
	t.Errorf("the session of the flood's peer ended: refused %v", after.RefusedReasons())
}
