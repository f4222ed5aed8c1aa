package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// world is a round that runs.
type world struct {
	plan    *Plan
	g       ground
	counts  *Counts
	began   time.Time
	nodes   []*node
	flows   []*flow // those of the plan, and then a last one from each node to each other
	epochs  atomic.Uint64
	over    context.Context // nothing new is begun any more
	end     context.CancelFunc
	work    sync.WaitGroup // who begins new things
	takers  sync.WaitGroup // who takes what comes
	leave   []func()       // what guests do in the end
	down    [2]bool        // interfaces of the sides
	late    [2][]*node     // nodes that begin when theirs is up
	tooLong bool           // the end was

	mu      sync.Mutex
	fails   []string
	excused time.Time // until then nothing needs to go on
	counted map[string]uint64
	links   map[uint64]*linkRecord
}

// mostFails is how many violations of a round are kept.
const mostFails = 20

func (w *world) violate(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Violations.Add(1)
	for _, n := range w.nodes {
		n.recent.freeze()
	}
	if len(w.fails) < mostFails {
		w.fails = append(w.fails, fmt.Sprintf("%v %s", time.Since(w.began).Round(time.Microsecond), s))
	}
}

func (w *world) violatef(format string, args ...any) { w.violate(fmt.Sprintf(format, args...)) }

// failed returns what was wrong so far.
func (w *world) failed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.fails...)
}

// excuse says that for so long nothing needs to go on.
func (w *world) excuse(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if until := time.Now().Add(d); until.After(w.excused) {
		w.excused = until
	}
}

// excuses reports whether a transaction may fail with that error.
func (w *world) excuses(err error) bool {
	if !w.plan.MayFail {
		return false
	}
	// Who closed a connection and is met again for the sake of its links shows no memory.
	dropped := slices.ContainsFunc(w.plan.Actions, func(a Action) bool { return a.Verb == Drop })
	return worlds.Excused(err) || dropped && errors.Is(err, dgrdma.ErrNoService)
}

// newWorld lays out what the plan has.
func newWorld(p *Plan, counts *Counts, g ground) *world {
	w := &world{plan: p, g: g, counts: counts, began: time.Now(), counted: make(map[string]uint64), links: make(map[uint64]*linkRecord)}
	w.over, w.end = context.WithCancel(context.Background())
	for i := range p.Nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for i := range p.Flows {
		w.flows = append(w.flows, newFlow(w, len(w.flows), &p.Flows[i]))
	}
	for i := range p.Nodes {
		for j := range p.Nodes {
			if Joined(i, j) && (p.Kind != worlds.FPGA || i == 0) {
				w.flows = append(w.flows, newFlow(w, len(w.flows), &Flow{Way: Way{i, j}, Slots: 1, Size: 64, Cuts: 1, Burst: 1}))
			}
		}
	}
	return w
}

// lasts are the flows that say goodbye.
func (w *world) lasts() []*flow { return w.flows[len(w.plan.Flows):] }

// sleep waits, or until the round is over.
func (w *world) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.over.Done():
	}
}

// count adds what was counted since the last time.
func (w *world) count() {
	by := w.g.faults()
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, n := range by {
		if n > w.counted[k] {
			w.counts.fault(k, n-w.counted[k])
			w.counted[k] = n
		}
	}
}

// guest is an id of nobody's that is in the plan.
func guest(id dgrdma.EndpointID) bool { return id >= firstGuest }
