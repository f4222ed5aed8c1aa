package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// peer returns the connection to the peer that has that id and the address of that number.
func (w *forgery) peer(e *Endpoint, id frame.EndpointID) *Conn {
	return e.peers.find(peerKey{ids{2, id}, simnet.Addr(uint32(id))})
}

// comes has a peer at the address of that number shake hands.
func (w *forgery) comes(t *testing.T, id frame.EndpointID) {
	t.Helper()
	w.introduce(t, simnet.Addr(uint32(id)), id, 5)
}

// asks sends the HELLO of an unknown source, and reports whether it is answered.
func (w *forgery) asks(id frame.EndpointID) bool {
	at := simnet.Addr(uint32(id))
	w.frames(0)
	w.shake(at, id, frame.Handshake{Kind: frame.HandshakeHello, Sender: 5})
	time.Sleep(time.Microsecond)
	synctest.Wait()
	return welcomed(w.frames(0), at)
}

// TestWhichPeerMakesRoom checks that a peer makes room for an unknown source if it is down, or was silent
// for longer than six times GiveUp, or than GiveUp without a session; and that none does to which
// the program connected.
func TestWhichPeerMakesRoom(t *testing.T) {
	const giveUp = 10 * time.Second
	nothing := func(*testing.T, *Endpoint, *forgery, *Conn) {}
	reset := func(_ *testing.T, _ *Endpoint, w *forgery, c *Conn) {
		c.Reset(0)
		w.message(c.peer.Addr, c.peer.ID, 7, frame.Message{Txn: 5, CompletionValue: 1, Index: frame.NotHandshake})
		w.frames(time.Second)
	}
	connect := func(t *testing.T, e *Endpoint, _ *forgery, _ *Conn) { connectTo(t, e, 10) }
	fail := func(t *testing.T, _ *Endpoint, _ *forgery, c *Conn) {
		if err := c.Post(write(0, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		is     func(t *testing.T, e *Endpoint, w *forgery, c *Conn)
		silent time.Duration
		room   bool
	}{
		{"spoke of late", nothing, giveUp + 1, false},
		{"was silent", nothing, 6 * giveUp, false},
		{"was silent for longer", nothing, 6*giveUp + 1, true},
		{"is to introduce itself", reset, giveUp, false},
		{"did not introduce itself", reset, giveUp + 1, true},
		{"is down", fail, 2 * giveUp, true},
		{"is connected", connect, 100 * giveUp, false},
		{"is connected, and down", func(t *testing.T, e *Endpoint, w *forgery, c *Conn) {
			connect(t, e, w, c)
			fail(t, e, w, c)
		}, 100 * giveUp, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{MaxPeers: 2, PeersPerHost: 2, GiveUp: giveUp})
				defer e.Close()
				connectTo(t, e, 7)
				w.comes(t, 10)
				p := w.peer(e, 10)
				c.is(t, e, w, p)
				time.Sleep(c.silent - e.now().Sub(p.rx.livedAt))
				if got := w.asks(20); got != c.room {
					t.Errorf("room for an unknown source: %v", got)
				}
			})
		})
	}
}
