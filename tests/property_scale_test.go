package tests

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// manyPlan is one endpoint with many peers that write to it and it to them.
func manyPlan(peers int) *propertyPlan {
	p := &propertyPlan{
		seed: 7, kind: "native", nodes: peers + 1, mtu: 510, giveUp: 2 * time.Second, duration: 10 * time.Millisecond,
		settle: 100 * time.Millisecond, links: make(map[[2]int]simnet.Link),
	}
	for i := range p.nodes {
		p.each = append(p.each, propertyNodePlan{})
		for _, r := range [][2]int{{0, i}, {i, 0}} {
			p.links[r] = simnet.Link{Latency: time.Duration(100_000 + 17*r[0] + 101*r[1]), Loss: 0.05}
		}
		if i > 0 {
			p.flows = append(p.flows,
				propertyFlowPlan{from: i, to: 0, start: 1, count: 5, depth: 5, segments: []int{700, 40}, completion: true},
				propertyFlowPlan{from: 0, to: i, start: 1, count: 5, depth: 2, segments: []int{2000}, completion: true},
			)
		}
	}
	p.star = true
	return p
}

func TestManyPeersWithLoss(t *testing.T) {
	if fails := runPlan(t, manyPlan(100), ""); len(fails) > 0 {
		t.Error(fails)
	}
}

// TestOneOfManyDies: who dies is given up in about GiveUp, and nobody else
// notices.
func TestOneOfManyDies(t *testing.T) {
	const dead = 37
	p := manyPlan(100)
	synctest.Test(t, func(t *testing.T) {
		w := newPropertyWorld(t, p, "")
		defer w.net.Close()
		for _, n := range w.nodes {
			w.start(n)
		}
		time.Sleep(time.Second)
		for _, r := range [][2]int{{0, dead}, {dead, 0}} {
			w.net.Link(w.nodes[r[0]].addr, w.nodes[r[1]].addr, simnet.Link{Down: true})
		}
		began := time.Now()
		for _, f := range w.flows[:len(p.flows)] {
			if f.plan.from == 0 {
				w.begin(f)
			}
		}
		<-w.conn(0, dead).Done()
		if d := time.Since(began); d < p.giveUp*9/10 || d > p.giveUp*3/2 {
			t.Errorf("given up after %v, want about %v", d, p.giveUp)
		}
		time.Sleep(time.Second)
		w.mu.Lock()
		for _, x := range w.txs {
			if lost := x.flow.plan.to == dead; x.posted && (x.done != 1 || (x.err != nil) != lost) {
				t.Errorf("%s is done %d times: %v", x.name(), x.done, x.err)
			}
		}
		w.fails = nil
		w.mu.Unlock()
		for i := range p.nodes {
			if c := w.conn(0, i); c != nil && (c.Err() != nil) != (i == dead) {
				t.Errorf("connection to %d: %v", i, c.Err())
			}
		}
		s := w.nodes[0].ep.Stats()
		if s.TransactionsDone != 99*5 {
			t.Errorf("%d transactions done, want %d", s.TransactionsDone, 99*5)
		}
		for _, n := range w.nodes {
			w.stop(n, false)
		}
		if len(w.fails) > 0 {
			t.Error(fmt.Sprint(w.fails))
		}
	})
}
