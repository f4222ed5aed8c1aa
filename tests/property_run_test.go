package tests

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// run carries out the schedule and returns what was wrong.
func (w *propertyWorld) run() []string {
	defer w.net.Close()
	for _, n := range w.nodes {
		w.start(n)
	}
	stopWatching := w.watch()
	steps := w.steps()
	for _, s := range steps {
		time.Sleep(s.at - time.Since(w.began))
		s.do()
	}
	w.drain()
	stopWatching()
	w.farewell()
	w.judge()
	return w.fails
}

type propertyStep struct {
	at time.Duration
	do func()
}

// steps lists what the driver does and when. No two steps share an instant
// with each other or with what the network does.
func (w *propertyWorld) steps() (steps []propertyStep) {
	add := func(at time.Duration, do func()) { steps = append(steps, propertyStep{at, do}) }
	for _, f := range w.flows[:len(w.plan.flows)] {
		add(f.plan.start, func() { w.begin(f) })
	}
	for _, a := range w.plan.actions {
		from, to := w.nodes[a.from], w.nodes[a.to]
		switch a.verb {
		case verbKick:
			add(a.at, w.kick)
		case verbLink:
			add(a.at, func() {
				w.lockedLogf("link %d->%d: %s", a.from, a.to, worlds.Describe(a.link))
				w.link(from, to, a.link)
			})
		case verbRestart:
			add(a.at, func() {
				if from.up {
					w.stop(from, a.crash)
				}
			})
			add(a.at+a.gap, func() {
				if !from.up {
					w.start(from)
					w.kick()
				}
			})
		case verbReset:
			add(a.at, func() {
				if from.up {
					w.reset(from, to)
				}
			})
		case verbReconnect:
			life := -1
			add(a.at, func() {
				if from.up && from.conns[a.to] != nil {
					w.disconnect(from, to)
					life = from.life
				}
			})
			add(a.at+a.gap, func() {
				if from.up && from.life == life && from.conns[a.to] == nil {
					w.connect(from, to)
					w.kick()
				}
			})
		}
	}
	w.addStrangers(add)
	slices.SortStableFunc(steps, func(a, b propertyStep) int { return int(a.at - b.at) })
	return steps
}

func (w *propertyWorld) reset(n, to *propertyNode) {
	c := w.conn(n.index, to.index)
	if c == nil {
		return
	}
	w.lockedLogf("node %d: reset of %d", n.index, to.index)
	if err := c.Reset(0); err != nil {
		w.failLocked("node %d: Reset: %v", n.index, err)
	}
	w.kick()
}

func (w *propertyWorld) disconnect(n, to *propertyNode) {
	w.mu.Lock()
	c := n.conns[to.index]
	n.conns[to.index] = nil
	w.logf("node %d: connection to %d is closed", n.index, to.index)
	w.mu.Unlock()
	c.Close()
}

func (w *propertyWorld) conn(from, to int) *dgrdma.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.nodes[from]; n.up {
		return n.conns[to]
	}
	return nil
}

// kick starts flows again that stopped because something failed.
func (w *propertyWorld) kick() {
	for _, f := range w.flows {
		w.pump(f)
	}
}

func (w *propertyWorld) begin(f *propertyFlow) {
	w.mu.Lock()
	f.started = true
	w.mu.Unlock()
	if from := w.nodes[f.plan.from]; from.up && w.plan.each[f.plan.from].accept && w.conn(f.plan.from, f.plan.to) == nil {
		w.connect(from, w.nodes[f.plan.to])
	}
	if f.plan.wait {
		w.writer.Go(func() { w.write(f) })
		return
	}
	w.pump(f)
}

// take returns the flow's next transaction, and nil if there is none or it is
// not yet its turn. Guarded by mu.
func (w *propertyWorld) take(f *propertyFlow) *propertyTx {
	if !f.started || w.ending && f.index < len(w.plan.flows) || f.pending >= f.plan.depth {
		return nil
	}
	x := f.retry
	f.retry = nil
	if x == nil {
		if f.next >= f.plan.count {
			return nil
		}
		x = &propertyTx{idx: uint32(len(w.txs) + 1), flow: f, place: f.places[f.next%len(f.places)]}
		f.next++
		f.last = x.idx
		x.place.txs = append(x.place.txs, x)
		w.txs = append(w.txs, x)
	}
	f.pending++
	x.life = w.nodes[f.plan.from].life
	x.posted = true
	x.t = dgrdma.Transaction{Cookie: x, Urgent: x.idx%9 == 0}
	if f.plan.completion {
		x.t.Completion = dgrdma.Word(x.place.completion, x.idx)
	}
	for i, a := range x.place.segments {
		x.t.Segments = append(x.t.Segments, dgrdma.Segment{Addr: a, Bytes: slices.Clone(x.pattern(i))})
	}
	return x
}

// pump posts what the flow may have pending.
func (w *propertyWorld) pump(f *propertyFlow) {
	if f.plan.wait {
		return
	}
	for {
		c := w.conn(f.plan.from, f.plan.to)
		if c == nil {
			return
		}
		w.mu.Lock()
		x := w.take(f)
		w.mu.Unlock()
		if x == nil {
			return
		}
		x.t.Done = w.done
		if err := c.Post(&x.t); err != nil {
			w.mu.Lock()
			w.refused(x, err)
			w.mu.Unlock()
			return
		}
	}
}

// refused notes that Post took nothing. Guarded by mu.
func (w *propertyWorld) refused(x *propertyTx, err error) {
	f := x.flow
	f.pending--
	x.posted = false
	f.retry = x
	switch {
	case errors.Is(err, dgrdma.ErrQueueFull) && w.plan.each[f.plan.from].queue > 0:
	case w.plan.mayFail && worlds.Excused(err):
	default:
		w.failf("%s: Post: %v", x.name(), err)
	}
}

// done is every transaction's Done.
func (w *propertyWorld) done(t *dgrdma.Transaction, err error) {
	x := t.Cookie.(*propertyTx)
	w.mu.Lock()
	w.settle(x, err)
	w.mu.Unlock()
	w.pump(x.flow)
}

// settle judges the outcome of a transaction. Guarded by mu.
func (w *propertyWorld) settle(x *propertyTx, err error) {
	x.flow.pending--
	x.err = err
	if w.log != nil {
		w.logf("%s is done: %v", x.name(), err)
	}
	if x.done++; x.done > 1 {
		w.failf("%s is done %d times", x.name(), x.done)
	}
	if !x.posted {
		w.failf("%s is done but not posted", x.name())
	}
	if w.nodes[x.flow.plan.from].over[x.life] && !x.flow.plan.wait {
		w.failf("%s is done after Close", x.name())
	}
	swallowed := x.flow.plan.fate == fateSwallowed && x.idx%3 == 0
	switch {
	case err == nil && !swallowed && !w.plan.profile(x.flow.plan.from).NoAcks && !x.applied():
		w.failf("%s is done but was not applied: %+v of %d bytes", x.name(), x.at, x.place.total)
	case err != nil && !w.plan.mayFail && !w.ending:
		w.failf("%s failed: %v", x.name(), err)
	case err != nil && !worlds.Excused(err):
		w.failf("%s failed for no known reason: %v", x.name(), err)
	}
	// The bytes are ours again.
	for i := range x.t.Segments {
		b := x.t.Segments[i].Bytes
		for j := range b {
			b[j] = 0
		}
	}
}

// write does a flow's transactions by Write, with contexts that expire.
func (w *propertyWorld) write(f *propertyFlow) {
	d := worlds.NewDice(w.plan.seed, uint64(10000+f.index))
	for {
		c := w.conn(f.plan.from, f.plan.to)
		w.mu.Lock()
		var x *propertyTx
		if c != nil {
			x = w.take(f)
		}
		over := w.ending || x == nil && c != nil
		w.mu.Unlock()
		if x == nil {
			if over {
				return
			}
			time.Sleep(10 * time.Millisecond)
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), d.Span(time.Microsecond, 10*time.Second))
		err := c.Write(ctx, &x.t)
		cancel()
		w.mu.Lock()
		if errors.Is(err, context.DeadlineExceeded) {
			w.logf("%s was withdrawn", x.name())
			x.withdrawn, x.posted = true, false
			f.pending--
		} else {
			w.settle(x, err)
		}
		w.mu.Unlock()
		if err != nil {
			time.Sleep(d.Span(time.Millisecond, 100*time.Millisecond))
		}
	}
}

// calm makes the network perfect.
func (w *propertyWorld) calm() {
	for route, l := range w.plan.links {
		latency := 20*time.Microsecond + time.Duration(17*route[0]+101*route[1])
		if !w.plan.peers().Faults(route[0]).Reorder {
			latency = l.Latency + l.Jitter // nothing under way is overtaken
		}
		w.net.Link(w.nodes[route[0]].addr, w.nodes[route[1]].addr, simnet.Link{Latency: latency})
	}
}
