package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestEveryHelloIsCounted checks that one of an unknown source's HELLOs is answered for each batch
// of datagrams, and that the others are counted as duplicates, so that a flood of them is seen.
// They are not refused: on a busy machine every peer asks twice before it is answered.
func TestEveryHelloIsCounted(t *testing.T) {
	refused := 0
	e, w := openForgery(t, Config{Manual: true, OnEvent: func(ev Event) {
		if ev.Kind == FrameRefused {
			refused++
		}
	}})
	defer e.Close()
	const same, others = 10, 3
	for range same {
		w.shake(addrA, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 5})
	}
	for i := range others {
		w.shake(simnet.Addr(uint32(100+i)), 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 5})
	}
	if n, err := e.Progress(time.Second); n != same+others || err != nil {
		t.Fatalf("%d datagrams at once, %v", n, err)
	}
	answers := len(w.frames(time.Millisecond))
	s := e.Stats()
	if answers != 1+others || s.Challenges != 1+others || s.Duplicates != same-1 || s.RefusedBy(RefusedNoSession) != 0 || refused != 0 {
		t.Errorf("%d answers, %d counted; %d duplicates, %d refused and %d events of %d", answers, s.Challenges, s.Duplicates, s.RefusedBy(RefusedNoSession), refused, same+others)
	}
}
