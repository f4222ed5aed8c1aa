package endpoint

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Strangers are refused until they are accepted, and again afterwards; those who
// were learned stay.
func TestAcceptAnyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		knock := func(n uint32) *Endpoint {
			e := p.open(simnet.Addr(10+n), &Config{ID: 100})
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			if err := c.Post(write(64*n, pattern(int(n), 8), 4*n, n)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			return e
		}
		came := func(n uint32) bool { return p.memB.Load32(4*n) == n }
		first := knock(1)
		defer first.Close()
		if came(1) || len(p.b.Conns()) != 1 || p.b.Stats().Refused[RefusedSource] == 0 {
			t.Errorf("a stranger was taken in: %+v", p.b.Stats())
		}
		p.b.AcceptAny(true)
		time.Sleep(2 * time.Second)
		if !came(1) || len(p.b.Conns()) != 2 {
			t.Errorf("a stranger was not taken in: %+v", p.b.Stats())
		}
		p.b.AcceptAny(false)
		second := knock(2)
		defer second.Close()
		if came(2) || len(p.b.Conns()) != 2 {
			t.Error("a second stranger was taken in")
		}
	})
}
