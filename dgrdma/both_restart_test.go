package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestBothStartAgain checks that two sides that both start a new life can write again within some round trips. One side closes its
// connection and makes another one. The other side, which hears that, offers its next life to the new connection, and then its program
// starts again as well. That takes less than half of GiveUp, for which a life that is over would be insisted on.
func TestBothStartAgain(t *testing.T) {
	for name, begins := range map[string]func(p *pair) (keeps bool){
		"Reset": func(p *pair) bool { return p.toB.Reset(0) == nil },
		"Close": func(p *pair) bool {
			p.toB.Close()
			p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: 1 << 20})
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
				defer p.close()
				for _, c := range []*Conn{p.toB, p.toA} {
					if err := c.Write(t.Context(), write(64, pattern(1, 5000), 0, 1)); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				p.toA.Close()
				p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA, Size: 1 << 20})
				<-p.toB.Done()
				time.Sleep(100 * time.Microsecond) // the offer left
				keeps := begins(p)
				for i := 0; ; i++ {
					err := p.toA.Write(t.Context(), write(64, pattern(2, 5000), 0, 2))
					if err == nil {
						break
					}
					if keeps || i == 3 {
						t.Fatal(err) // what was offered is what began
					}
					p.toA.Reset(0)
				}
				if err := p.toB.Write(t.Context(), write(64, pattern(2, 5000), 0, 2)); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
