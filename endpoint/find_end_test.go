package endpoint

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestFindBesideOneThatEnds: who begins to ask as another one just ends leaves nothing behind of
// either question.
func TestFindBesideOneThatEnds(t *testing.T) {
	w := newFindWorld(t, &Config{}, nil)
	defer w.end()
	first, err := w.a.inquire(Peer{Addr: asked})
	if err != nil {
		t.Fatal(err)
	}
	first.conn.mu.Lock() // for which its end waits
	var both sync.WaitGroup
	both.Go(func() { w.a.inquired(first) })
	time.Sleep(10 * time.Millisecond)
	both.Go(func() {
		second, err := w.a.inquire(Peer{Addr: asked})
		if err != nil {
			t.Error(err)
			return
		}
		w.a.inquired(second)
	})
	time.Sleep(10 * time.Millisecond) // unless the second waits for the first it asks meanwhile
	first.conn.mu.Unlock()
	both.Wait()
	other := udpAddr("10.0.0.3:7100")
	w.connect(w.a, Peer{ID: 9, Addr: other})
	if got := w.a.peers.only(); got != other || len(w.a.peers.sites) != 1 || len(w.a.inquiries) > 0 {
		t.Errorf("%d addresses and %d questions are left, and the only peer's is %v", len(w.a.peers.sites), len(w.a.inquiries), got)
	}
}

// TestFindInCallback: who asks in a callback, or while another one holds up who receives, is not
// told that nobody is there, but why nobody answered.
func TestFindInCallback(t *testing.T) {
	const giveUp = 2 * time.Second
	gone := udpAddr("10.0.0.9:1")
	fails := func(w *findWorld, find func()) {
		w.connect(w.a, Peer{ID: 9, Addr: gone}).Post(&Transaction{Completion: Word(0, 1), Done: func(*Transaction, error) { find() }})
	}
	for name, x := range map[string]struct {
		manual bool
		event  func(find func())
		asks   func(w *findWorld, find func())
		says   string
	}{
		"event":        {event: func(find func()) { find() }, says: "this is a callback"},
		"done":         {asks: fails, says: "this is a callback"},
		"done, manual": {asks: fails, says: "this is a callback", manual: true},
		"beside one": {event: func(func()) { time.Sleep(2 * giveUp) }, says: "while a callback has not returned for ", asks: func(_ *findWorld, find func()) {
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
				if err := <-told; !errors.Is(err, ErrPeerDown) || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "nobody there") {
					t.Error(err)
				}
			})
		})
	}
}
