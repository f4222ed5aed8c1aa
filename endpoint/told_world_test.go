package endpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestServicesAreKnownInTheEnd: whatever is lost, late or forged while services are added at
// both ends and connections begin anew, in the end each end knows all that the other serves, and
// no more is said of it.
func TestServicesAreKnownInTheEnd(t *testing.T) {
	worlds := uint64(300)
	if testing.Short() {
		worlds = 30
	}
	first := uint64(time.Now().UnixNano())
	for seed := first; seed < first+worlds; seed++ {
		synctest.Test(t, func(t *testing.T) {
			if toldWorld(t, seed); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

func toldWorld(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	learns := rnd.IntN(2) == 0
	p := newPair(t, pairConfig{b: Config{AcceptAny: learns}})
	defer p.close()
	if learns {
		p.toA.Close()
		p.toB.Reset(0) // if they had met already, the goodbye ended it
	}
	way := func() simnet.Link {
		l := simnet.Link{Latency: time.Duration(rnd.Int64N(int64(30 * time.Millisecond))), Loss: 0.4 * rnd.Float64()}
		if rnd.IntN(2) == 0 {
			l.Duplicate = 0.2
			l.Reorder, l.ReorderBy = 0.3, time.Duration(rnd.Int64N(int64(100*time.Millisecond)))
		}
		return l
	}
	forge := func(from, to transport.Addr, src, dst frame.EndpointID) {
		b := (&stranger{id: src, dst: dst}).encode(1, msg{Message: frame.Hello{Life: 1 + rnd.Uint32N(5)}.Message()})
		if rnd.IntN(2) == 0 {
			b = append(b, make([]byte, frame.ServicesSize)...)
		}
		p.net.Inject(from, to, b)
	}
	ends := []*Endpoint{p.a, p.b}
	for step := range 20 {
		if rnd.IntN(5) == 0 {
			p.net.Link(addrA, addrB, way())
			p.net.Link(addrB, addrA, way())
		}
		e := ends[rnd.IntN(2)]
		switch rnd.IntN(6) {
		case 0, 1, 2:
			e.Serve(newShelf(fmt.Sprintf("s%d", step), 1<<16)) // the ninth is refused
		case 3:
			forge(addrA, addrB, 1, 2)
		case 4:
			forge(addrB, addrA, 2, 1)
		default:
			for _, c := range e.Conns() {
				if rnd.IntN(3) == 0 {
					c.Reset(0)
				} else {
					c.Post(write(64, pattern(step, 8), 0, 1))
				}
			}
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Duration(1+rnd.IntN(100)) * time.Millisecond))))
	}
	p.net.Link(addrA, addrB, simnet.Link{})
	p.net.Link(addrB, addrA, simnet.Link{})
	p.toB.Post(write(64, pattern(1, 8), 0, 1))
	time.Sleep(20 * time.Second)
	sent := p.net.TotalStats().Sent
	time.Sleep(time.Hour)
	if n := p.net.TotalStats().Sent - sent; n > 0 {
		t.Errorf("%d frames in an hour at rest", n)
	}
	for i, e := range ends {
		for _, c := range e.Conns() {
			n := c.kind.(*native)
			c.mu.Lock()
			known, err := n.tx.list, n.tx.err
			want := ends[1-i].offers.to(false)
			if err != nil || !slices.Equal(known.All(), want.All()) || known.Known != len(n.tx.offers.to(false).All()) {
				t.Errorf("%d knows of %v, the other end serves %v (%v)", e.ID(), known.String(), want.String(), err)
			}
			c.mu.Unlock()
		}
	}
}
