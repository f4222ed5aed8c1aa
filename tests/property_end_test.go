package tests

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// drain waits until everything that was posted is answered.
func (w *propertyWorld) drain() {
	time.Sleep(max(0, w.plan.duration-time.Since(w.began)))
	w.lockedLogf("the network is calm")
	w.calm()
	// What peers may not lose can still be under way.
	time.Sleep(10 * time.Millisecond)
	for _, n := range w.nodes {
		if !n.up {
			w.start(n)
		}
		for _, to := range w.nodes {
			if w.plan.joined(n.index, to.index) && w.conn(n.index, to.index) == nil {
				w.connect(n, to)
			}
		}
	}
	w.kick()
	// A window of one frame over a long path takes minutes: what counts is that no transaction ends.
	last, at := -1, time.Now()
	for ; ; time.Sleep(50 * time.Millisecond) {
		if n := w.ended(); n != last {
			last, at = n, time.Now()
		}
		late := time.Since(at) > w.plan.giveUp+60*time.Second
		if w.answered(late) || late {
			break
		}
		if !w.plan.mayFail {
			w.kick() // flows that met a full queue
		}
	}
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.writer.Wait()
	time.Sleep(w.plan.settle + time.Second)
}

// ended returns how many transactions have, with or without an error.
func (w *propertyWorld) ended() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, f := range w.flows {
		n += f.next - f.pending
	}
	return n
}

// answered reports whether nothing is pending, and complains if that is late.
func (w *propertyWorld) answered(late bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := true
	for _, f := range w.flows {
		idle := f.pending == 0
		if !w.plan.mayFail && f.started {
			idle = idle && f.next == f.plan.count && f.retry == nil
		}
		if idle {
			continue
		}
		all = false
		if late {
			w.failf("flow %d: %d transactions pending, %d of %d begun", f.index, f.pending, f.next, f.plan.count)
		}
	}
	return all
}

// farewell checks that every connection still works, and that nothing is left
// of what was done.
func (w *propertyWorld) farewell() {
	again := false
	for _, n := range w.nodes {
		for _, to := range w.nodes {
			if c := w.conn(n.index, to.index); c != nil && to != n && c.Err() != nil {
				w.reset(n, to)
				again = true
			}
		}
	}
	if again {
		time.Sleep(10 * time.Second)
	}
	for _, f := range w.flows[len(w.plan.flows):] {
		if w.plan.kind == "fpga" && f.plan.from == 1 {
			continue
		}
		w.begin(f)
	}
	for range 100 {
		if time.Sleep(time.Second); w.answered(false) {
			break
		}
	}
	time.Sleep(3 * time.Second)
	for _, f := range w.flows[len(w.plan.flows):] {
		w.mu.Lock()
		if f.next > 0 {
			switch x := w.txs[f.last-1]; {
			case x.done != 1:
				w.failf("%s, the last one, got no answer", x.name())
			case x.err != nil:
				w.failf("%s, the last one, failed: %v", x.name(), x.err)
			case !x.applied():
				w.failf("%s, the last one, was not applied", x.name())
			}
		}
		w.mu.Unlock()
	}
	for _, n := range w.nodes {
		for _, to := range w.nodes {
			if w.plan.joined(n.index, to.index) {
				w.nothingLeft(n, n.conns[to.index])
			}
		}
	}
}

func (w *propertyWorld) nothingLeft(n *propertyNode, c *dgrdma.Conn) {
	s := c.Stats()
	if s.InFlight != 0 || s.Queued != 0 || s.Open != 0 || s.Down {
		w.failLocked("node %d: connection to %v is left with %d in flight, %d queued, %d open, down %v",
			n.index, s.Peer, s.InFlight, s.Queued, s.Open, s.Down)
	}
}

// judge ends the endpoints and checks their memories.
func (w *propertyWorld) judge() {
	for _, n := range w.nodes {
		if w.dice.Chance(0.5) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if err := n.ep.Shutdown(ctx); err != nil {
				w.failLocked("node %d: Shutdown: %v", n.index, err)
			}
			cancel()
		}
		w.stop(n, false)
	}
	time.Sleep(10 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		n.memory.image()
	}
	for _, x := range w.txs {
		swallowed := x.flow.plan.fate == fateSwallowed && x.idx%3 == 0
		switch {
		case x.posted && x.done != 1:
			w.failf("%s was posted and is done %d times", x.name(), x.done)
		case x.posted && x.err == nil && !swallowed && !x.applied():
			w.failf("%s is done and was not applied", x.name())
		}
	}
}

// runPlan runs a schedule in a bubble and returns what was wrong.
func runPlan(t *testing.T, p *propertyPlan, dir string) (fails []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newPropertyWorld(t, p, dir)
		fails = w.run()
	})
	return fails
}
