package dgrdma

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestFindWhileAnotherEnds checks that a discovery that begins as another one just ends leaves
// nothing of either question.
func TestFindWhileAnotherEnds(t *testing.T) {
	w := newFindWorld(t, &Config{}, nil)
	defer w.end()
	first, err := w.a.discover(Peer{Addr: asked})
	if err != nil {
		t.Fatal(err)
	}
	first.conn.mu.Lock() // for which its end waits
	var both sync.WaitGroup
	both.Go(func() { w.a.endDiscovery(first) })
	time.Sleep(10 * time.Millisecond)
	both.Go(func() {
		second, err := w.a.discover(Peer{Addr: asked})
		if err != nil {
			t.Error(err)
			return
		}
		w.a.endDiscovery(second)
	})
	time.Sleep(10 * time.Millisecond) // unless the second waits for the first it asks in that time
	first.conn.mu.Unlock()
	both.Wait()
	other := udpAddr("10.0.0.3:7100")
	w.connect(w.a, Peer{ID: 9, Addr: other})
	if got := w.a.peers.only(); got != other || len(w.a.peers.sites) != 1 || len(w.a.discoveries) > 0 {
		t.Errorf("%d addresses and %d questions are left, and the only peer's is %v", len(w.a.peers.sites), len(w.a.discoveries), got)
	}
}

// TestFindInCallback checks that a discovery in a callback on the receiver, or while one blocks the
// receiver, is not told that no endpoint is there, but why no answer came.
func TestFindInCallback(t *testing.T) {
	const giveUp = 2 * time.Second
	gone := udpAddr("10.0.0.9:1")
	for name, x := range map[string]struct {
		manual bool
		event  func(find func())
		asks   func(w *findWorld, find func())
	}{
		"in one":         {event: func(find func()) { find() }},
		"in one, manual": {event: func(find func()) { find() }, manual: true},
		"beside one": {event: func(func()) { time.Sleep(2 * giveUp) }, asks: func(_ *findWorld, find func()) {
			time.Sleep(giveUp / 10)
			find()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan error, 1)
				var w *findWorld
				find := sync.OnceFunc(func() {
					_, err := w.a.Find(t.Context(), Peer{Addr: asked})
					told <- err
				})
				a := &Config{GiveUp: giveUp, Manual: x.manual}
				if x.event != nil {
					a.OnEvent = func(Event) { x.event(find) }
				}
				w = newFindWorld(t, a, &Config{AcceptAny: true})
				defer w.end()
				w.net.Link(asking, gone, simnet.Link{Down: true})
				w.connect(w.a, Peer{ID: 2, Addr: asked})
				if x.asks != nil {
					x.asks(w, find)
				}
				for x.manual && len(told) == 0 {
					w.a.Progress(giveUp)
				}
				if err := <-told; !errors.Is(err, ErrPeerDown) || !strings.Contains(err.Error(), "while a callback has not returned for ") || strings.Contains(err.Error(), "nobody there") {
					t.Error(err)
				}
			})
		})
	}
}
