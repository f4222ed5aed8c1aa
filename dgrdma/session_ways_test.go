package dgrdma

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// sessionWay is one of the ways in which two endpoints come to a session.
type sessionWay struct {
	sealed bool
	udp    bool // or Ethernet
	one    bool // only a connects; b takes unknown sources
}

func (w sessionWay) String() string {
	return fmt.Sprintf("sealed %v, UDP %v, one connects %v", w.sealed, w.udp, w.one)
}

func sessionWays() (all []sessionWay) {
	for i := range 8 {
		all = append(all, sessionWay{i&1 != 0, i&2 != 0, i&4 != 0})
	}
	return all
}

// couple is a pair that met in one of the ways.
type couple struct {
	*pair
	way sessionWay
	at  [2]transport.Addr
	cfg [2]Config
}

const coupleLatency = 100 * time.Microsecond

// inEachWay runs a test of two endpoints that begin to meet in each of the ways.
func inEachWay(t *testing.T, a, b Config, test func(t *testing.T, p *couple)) {
	for _, w := range sessionWays() {
		t.Run(w.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newCouple(t, w, a, b)
				defer p.close()
				test(t, p)
			})
		})
	}
}

func newCouple(t *testing.T, w sessionWay, a, b Config) *couple {
	p := &couple{pair: &pair{t: t, net: simnet.New(1)}, way: w, at: [...]transport.Addr{addrA, addrB}, cfg: [...]Config{a, b}}
	if w.udp {
		p.at = [...]transport.Addr{udpAddr("10.0.0.1:4791"), udpAddr("10.0.0.2:4791")}
	}
	for i := range p.cfg {
		p.cfg[i].ID = frame.EndpointID(1 + i)
		if w.sealed {
			p.cfg[i].Keys = ringOf(1)
		}
		if p.cfg[i].OnEvent == nil {
			p.cfg[i].OnEvent = p.note
		}
	}
	p.cfg[1].AcceptAny = p.cfg[1].AcceptAny || w.one
	p.link(simnet.Link{Latency: coupleLatency}, simnet.Link{Latency: coupleLatency})
	p.memA = p.region(1 << 20)
	p.cfg[0].Memory = p.memA
	p.a = p.open(p.at[0], &p.cfg[0])
	p.start()
	p.toB = p.connect(p.a, Peer{ID: 2, Addr: p.at[1], Size: 1 << 20})
	return p
}

// link says how frames pass from a to b, and back.
func (p *couple) link(there, back simnet.Link) {
	p.net.Link(p.at[0], p.at[1], there)
	p.net.Link(p.at[1], p.at[0], back)
}

// start starts b, and has it connect if both do.
func (p *couple) start() {
	p.t.Helper()
	p.memB = p.region(1 << 20)
	cfg := p.cfg[1]
	if cfg.Memory == nil {
		cfg.Memory = p.memB
	}
	p.b = p.open(p.at[1], &cfg)
	if !p.way.one {
		p.toA = p.connect(p.b, Peer{ID: 1, Addr: p.at[0], Size: 1 << 20})
	}
}

// restart starts b again, whose process ended.
func (p *couple) restart() {
	p.t.Helper()
	kill(p.b)
	p.start()
}

// meet has a write to b be done and all come to rest, and returns the connection of b.
func (p *couple) meet() (toA *Conn) {
	p.t.Helper()
	if err := p.toB.Write(p.t.Context(), write(64, pattern(1, 5000), 0, 1)); err != nil {
		p.t.Fatal(err)
	}
	all := p.b.Conns()
	if len(all) != 1 {
		p.t.Fatalf("%d connections", len(all))
	}
	time.Sleep(time.Second) // until the goroutine that waited for it receives no more
	return all[0]
}
