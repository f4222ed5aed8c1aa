package endpoint

import (
	"sync"
	"testing"
	"time"
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
