package dgrdma

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestUrgentWithoutEnd checks that urgent transactions that follow each other hold up no other one for ever: where the window is one
// frame, and where a long transaction has to wait until it is known how long frames arrive.
func TestUrgentWithoutEnd(t *testing.T) {
	for name, x := range map[string]struct {
		window int
		narrow bool
	}{"window of one frame": {1, false}, "path that may carry less": {0, true}, "both": {1, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				p := &pair{t: t, net: n}
				n.Link(addrA, addrB, simnet.Link{Latency: time.Millisecond})
				n.Link(addrB, addrA, simnet.Link{Latency: time.Millisecond})
				p.b = p.open(addrB, &Config{ID: 2, Memory: p.region(1 << 16), AcceptAny: true})
				defer p.b.Close()
				var err error
				wire := n.Attach(addrA, simnet.Config{MayNarrow: x.narrow, Poison: true})
				if p.a, err = New(wire, &Config{ID: 1, Window: x.window}); err != nil {
					t.Fatal(err)
				}
				defer p.a.Close()
				p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB})
				var over atomic.Bool
				ended := make(chan struct{}, 4)
				for i := range uint32(4) {
					again := write(64+8*i, nil, 64+8*i, 1)
					again.Urgent = true
					again.Done = func(tx *Transaction, err error) {
						if err != nil || over.Load() {
							ended <- struct{}{}
						} else if err := p.toB.Post(tx); err != nil {
							t.Error(err)
						}
					}
					if err := p.toB.Post(again); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				err = p.toB.Write(t.Context(), write(4096, pattern(1, 9500), 0, 1))
				if took := time.Since(began); err != nil || took > time.Second {
					t.Errorf("%v, after %v", err, took)
				}
				over.Store(true)
				for range 4 {
					<-ended
				}
			})
		})
	}
}
