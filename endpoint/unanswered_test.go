package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestEveryHelloIsCounted: of a stranger's introductions one is answered for each batch
// of datagrams; the others are counted as refused, so that a flood of them is seen.
func TestEveryHelloIsCounted(t *testing.T) {
	refused := 0
	e, w := openForgery(t, Config{Manual: true, OnEvent: func(ev Event) {
		if ev.Kind == FrameRefused && ev.Reason == RefusedNoSession && ev.Peer.Addr == addrA && ev.Peer.ID == 1 {
			refused++
		}
	}})
	defer e.Close()
	const same, others = 10, 3
	for range same {
		w.hello(addrA, 1, frame.Hello{Life: 5})
	}
	for i := range others {
		w.hello(simnet.Addr(uint32(100+i)), 1, frame.Hello{Life: 5})
	}
	if n, err := e.Progress(time.Second); n != same+others || err != nil {
		t.Fatalf("%d datagrams at once, %v", n, err)
	}
	answers := len(w.frames(time.Millisecond))
	s := e.Stats()
	if answers != 1+others || s.Challenges != 1+others || s.RefusedBy(RefusedNoSession) != same-1 || refused != same-1 {
		t.Errorf("%d answers, %d counted; %d refused and %d events of %d", answers, s.Challenges, s.RefusedBy(RefusedNoSession), refused, same+others)
	}
}
