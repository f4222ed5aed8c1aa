package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCloseTwice checks that a connection that was closed leaves the one alone that has its place,
// and counts once.
func TestCloseTwice(t *testing.T) {
	f := newFeed(t, Config{})
	old := f.native()
	f.give(f.encode(1, 1, bare(life, 1, 1)))
	old.Close()
	old.Close()
	var conns []*Conn
	for _, id := range []frame.EndpointID{1, 3} {
		c, err := f.e.Connect(Peer{ID: id, Addr: addrA})
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	old.Close()
	if n := len(f.e.Conns()); n != 2 || f.e.peers.find(conns[0].key()) != conns[0] {
		t.Errorf("%d peers, want 2", n)
	}
	if n := f.e.Stats().Completions; n != 1 {
		t.Errorf("%d completions in all, want 1", n)
	}
}

// TestOnlyAddress checks that the one address of all peers follows those that come and go.
func TestOnlyAddress(t *testing.T) {
	f := newFeed(t, Config{})
	connect := func(id frame.EndpointID, at uint32) *Conn {
		c, err := f.e.Connect(Peer{ID: id, Addr: simnet.Addr(at)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	here := []*Conn{connect(10, 5), connect(11, 5), connect(12, 5)}
	connect(13, 6)
	for i, c := range here {
		if got := f.e.peers.only(); !got.IsZero() {
			t.Errorf("%d peers are elsewhere, and %v is the only address", len(here)-i, got)
		}
		c.Close()
	}
	if got := f.e.peers.only(); got != simnet.Addr(6) {
		t.Errorf("the only address is %v, want that of the peer that is left", got)
	}
}

// TestAdoptedPeerLeavesItsPlace checks that a learned peer that is connected to does not count
// among those of its host any more, when it is there and when it is gone.
func TestAdoptedPeerLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 40, PeersPerHost: 1})
		defer e.Close()
		w.introduce(t, addrA, 9, 5)
		c, err := e.Connect(Peer{ID: 9, Addr: addrA})
		if err != nil {
			t.Fatal(err)
		}
		w.introduce(t, addrA, 10, 5)
		if n := len(e.Conns()); n != 2 {
			t.Errorf("%d peers, want the connected one and one learned", n)
		}
		c.Close()
		for _, c := range e.Conns() {
			c.Close()
		}
		if n := e.peers.places.Hosts(); n != 0 {
			t.Errorf("%d hosts are kept of nobody", n)
		}
	})
}

// TestRefusedUnknownSourcesAreCounted checks that unknown sources that are refused are counted,
// each for its reason.
func TestRefusedUnknownSourcesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		w.message(addrA, 1, 7, frame.Message{Txn: 5, CompletionValue: 1, Index: frame.NotHandshake})
		w.frames(time.Second)
		if s := e.Stats(); s.Challenges != 0 || s.RefusedBy(RefusedNoSession) != 1 {
			t.Errorf("data: %d answered, refused %v", s.Challenges, s.RefusedReasons())
		}
		w.shake(addrA, 1, frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 5, Receiver: 6})
		w.frames(time.Second)
		if s := e.Stats(); s.Challenges != 0 || s.RefusedBy(RefusedNoSession) != 2 {
			t.Errorf("an answer to nothing: %d answered, refused %v", s.Challenges, s.RefusedReasons())
		}
	})
}

// TestNoRoomForADriver checks that a peer that has nothing to prove itself with is refused, too, if
// there is no place for it.
func TestNoRoomForADriver(t *testing.T) {
	prof := OpenCPI2()
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 2, PeersPerHost: 2, Profile: &prof})
		defer e.Close()
		for i := range uint32(3) {
			w.message(simnet.Addr(10+i), frame.EndpointID(10+i), 1, frame.Message{Txn: 5, CompletionValue: 1, Count: 1, Index: 1})
			w.frames(time.Second)
		}
		if s := e.Stats(); s.Peers != 2 || s.Completions != 2 || s.RefusedBy(RefusedNoRoom) != 1 {
			t.Errorf("%d peers, %d completions, refused %v", s.Peers, s.Completions, s.RefusedReasons())
		}
	})
}

// TestNoPeerIsLearnedAtTheEnd checks that an unknown source that comes while the endpoint waits for
// the last transactions is refused.
func TestNoPeerIsLearnedAtTheEnd(t *testing.T) {
	prof := OpenCPI2()
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{Profile: &prof})
		native := Native()
		c, err := e.Connect(Peer{ID: 7, Addr: simnet.Addr(7), Profile: &native})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Post(write(0, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			ended <- e.Shutdown(ctx)
		}()
		time.Sleep(time.Second)
		w.message(addrA, 1, 1, frame.Message{Txn: 5, CompletionValue: 1, Count: 1, Index: 1})
		w.frames(100 * time.Millisecond)
		if s := e.Stats(); s.Peers != 1 || s.Completions != 0 || s.RefusedBy(RefusedSource) != 1 {
			t.Errorf("%d peers, %d completions, refused %v", s.Peers, s.Completions, s.RefusedReasons())
		}
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
