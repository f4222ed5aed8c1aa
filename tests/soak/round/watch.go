package round

import (
	"time"

	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// look is how often progress is looked at.
const look = 100 * time.Millisecond

// patience is how long a flow may stand still where nothing explains it: timeouts that double
// up to a second explain 22 s where many frames are lost, and whoever is not there is given
// up.
func (w *world) patience() time.Duration {
	p := 30*time.Second + w.settle()
	if w.plan.MayFail {
		p += w.plan.GiveUp
	}
	return p
}

// settle is how long frames may be on their way.
func (w *world) settle() (d time.Duration) {
	for _, l := range w.plan.Between {
		d = max(d, worlds.Settle(l))
	}
	for i := range w.plan.Actions {
		d = max(d, worlds.Settle(w.plan.Actions[i].Link))
	}
	// A queue in front of a narrow way.
	return d + time.Duration(simnet.DefaultQueue/64)*time.Millisecond
}

// watch looks at all flows now and then until told to stop, and complains about those that
// stand still.
func (w *world) watch(stop <-chan struct{}) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	bound := w.patience()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		w.count()
		for _, n := range w.nodes {
			n.mu.Lock()
			ep, up := n.ep, n.up
			n.mu.Unlock()
			if up {
				n.counts(ep)
			}
		}
		w.mu.Lock()
		excused := w.excused
		w.mu.Unlock()
		for _, f := range w.flows {
			others := w.movedBeside(f)
			f.mu.Lock()
			since := f.moved
			if time.Since(since) <= mostTurns*bound && others.After(since) {
				since = others
			}
			if excused.After(since) {
				since = excused
			}
			late := f.pending > 0 && !f.stalled && time.Since(since) > bound
			f.stalled = f.stalled || late
			pending, still := f.pending, time.Since(f.moved)
			f.mu.Unlock()
			if late {
				w.violatef("%v: nothing of %d transactions went on for %v", f, pending, still)
			}
		}
	}
}

// mostTurns is how many times as long a flow may stand still while others go on between the same
// nodes. What waits in front may take long: by windows of one frame, a hundred of them for a
// transaction, over a way of 90 ms.
const mostTurns = 8

// movedBeside returns when another flow between the same nodes last went on.
func (w *world) movedBeside(f *flow) (last time.Time) {
	for _, g := range w.flows {
		if g == f || g.plan.Way != f.plan.Way {
			continue
		}
		g.mu.Lock()
		if g.moved.After(last) {
			last = g.moved
		}
		g.mu.Unlock()
	}
	return last
}
