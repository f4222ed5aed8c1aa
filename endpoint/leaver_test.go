package endpoint

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// peer returns the connection to the peer that has that id and the address of that number.
func (w *forgery) peer(e *Endpoint, id frame.EndpointID) *Conn {
	return e.peers.find(peerKey{ids{2, id}, simnet.Addr(uint32(id))})
}

// comes introduces a peer at the address of that number.
func (w *forgery) comes(t *testing.T, id frame.EndpointID) {
	t.Helper()
	w.introduce(t, simnet.Addr(uint32(id)), id, 5)
}

// speaks has a peer show that it is there.
func (w *forgery) speaks(e *Endpoint, id frame.EndpointID) {
	w.hello(simnet.Addr(uint32(id)), id, frame.Hello{Life: 5, Peer: w.peer(e, id).Stats().Mine, Tells: true})
}

// asks sends a stranger's introduction, and reports whether it is answered.
func (w *forgery) asks(id frame.EndpointID) bool {
	at := simnet.Addr(uint32(id))
	w.frames(0)
	w.hello(at, id, frame.Hello{Life: 5})
	time.Sleep(time.Microsecond)
	synctest.Wait()
	for _, s := range w.frames(0) {
		if s.to == at {
			return true
		}
	}
	return false
}

// TestWhoMakesRoom: a peer makes room for a stranger if it is down, or was silent for longer
// than six times GiveUp, or than GiveUp without an introduction; and none does that the
// program connected to.
func TestWhoMakesRoom(t *testing.T) {
	const giveUp = 10 * time.Second
	nothing := func(*testing.T, *Endpoint, *forgery, *Conn) {}
	reset := func(_ *testing.T, _ *Endpoint, w *forgery, c *Conn) {
		c.Reset(0)
		w.message(c.peer.Addr, c.peer.ID, 7, frame.Message{Txn: 5, CompletionValue: 1, Index: frame.NotHello})
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
					t.Errorf("room for a stranger: %v", got)
				}
			})
		})
	}
}

// TestWhoWasSilentLongestMakesRoom: whatever the order in which they came, and as many as
// do leave for as many as come, at once.
func TestWhoWasSilentLongestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 4, PeersPerHost: 4})
		defer e.Close()
		for id := range frame.EndpointID(4) {
			w.comes(t, 10+id)
		}
		for _, id := range []frame.EndpointID{12, 10, 13, 11} {
			time.Sleep(time.Second)
			w.speaks(e, id)
		}
		time.Sleep(2 * time.Minute)
		for i, gone := range []frame.EndpointID{12, 10, 13, 11} {
			w.comes(t, frame.EndpointID(20+i))
			if w.peer(e, gone) != nil || e.peers.len() != 4 {
				t.Errorf("%d peers, and %d is there", e.peers.len(), gone)
			}
		}
	})
}

// TestWhoWasToLeave: a peer that was found to make room, and does not any more because it
// spoke or is gone, is not the one that does.
func TestWhoWasToLeave(t *testing.T) {
	for name, stays := range map[string]func(t *testing.T, e *Endpoint, w *forgery){
		"spoke": func(_ *testing.T, e *Endpoint, w *forgery) { w.speaks(e, 10) },
		"gone": func(t *testing.T, e *Endpoint, w *forgery) {
			w.peer(e, 10).Close()
			w.comes(t, 12)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{MaxPeers: 2, PeersPerHost: 2})
				defer e.Close()
				w.comes(t, 10)
				time.Sleep(time.Second)
				w.comes(t, 11)
				time.Sleep(2 * time.Minute)
				if w.asks(20); e.search.found != w.peer(e, 10) {
					t.Fatal("nobody is found, or another one")
				}
				stays(t, e, w)
				w.frames(time.Millisecond)
				w.comes(t, 21)
				if w.peer(e, 11) != nil || w.peer(e, 21) == nil || e.peers.len() != 2 {
					t.Errorf("of %d peers the wrong one made room", e.peers.len())
				}
			})
		})
	}
}

// TestNobodyMakesRoomForAWhile: where nobody was found to make room, nobody is looked for
// with each stranger, and somebody is after a while.
func TestNobodyMakesRoomForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 2, PeersPerHost: 2})
		defer e.Close()
		connectTo(t, e, 7)
		w.comes(t, 10)
		if w.asks(20) {
			t.Fatal("there is room")
		}
		again := e.search.again
		if pause := again - e.now(); pause <= 0 || pause > ack.Instant(time.Second) {
			t.Errorf("a pause of %v", time.Duration(pause))
		}
		w.peer(e, 10).down.Store(true) // whoever looks finds it
		if w.asks(20) || e.search.again != again {
			t.Error("looked again at once")
		}
		time.Sleep(time.Second)
		if !w.asks(20) {
			t.Error("looked no more")
		}
	})
}
