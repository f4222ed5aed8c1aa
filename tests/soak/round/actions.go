package round

import (
	"cmp"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport"
)

// step is something that happens at a time.
type step struct {
	at time.Duration
	do func()
}

// steps lists what the plan's actions begin and end with. No two of them share an instant.
func (w *world) steps() (steps []step) {
	for i := range w.plan.Actions {
		a := &w.plan.Actions[i]
		begin, end := w.act(a, i)
		steps = append(steps, step{a.At, func() {
			w.excuse(a.For + w.settle())
			w.counts.fault(string(a.Verb), 1)
			begin()
		}})
		if end != nil {
			steps = append(steps, step{a.At + a.For, end})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// act returns what an action does, and what it does when its time is over.
func (w *world) act(a *Action, index int) (begin, end func()) {
	from := w.nodes[a.From]
	switch to := w.nodes[a.To]; a.Verb {
	case Weather:
		return func() { w.g.weather(a) }, nil
	case Flap:
		return func() { w.flap(a.From, false) }, func() { w.flap(a.From, true) }
	case Pause:
		return func() { from.pause(true) }, func() { from.pause(false) }
	case Restart, Leave:
		return func() { from.finish(a.Verb == Restart && index%2 == 0, a.Verb == Leave) }, func() { w.restart(from) }
	case Drop:
		return func() { from.drop(to) }, func() { from.conn(to) }
	case Reset:
		return func() { from.reset(to) }, nil
	default:
		return w.guest(a, index)
	}
}

// flap has the interface of a side down or up. Nothing can be opened on one that is down: who
// would have begun meanwhile does when it is up.
func (w *world) flap(side int, up bool) {
	w.g.flap(side, up)
	if w.down[side] = !up; !up {
		return
	}
	for _, n := range w.late[side] {
		w.restart(n)
	}
	w.late[side] = nil
}

func (n *node) pause(on bool) {
	n.mu.Lock()
	g := n.gate
	n.mu.Unlock()
	g.shut(on)
}

// restart begins another life of a node that is down.
func (w *world) restart(n *node) {
	if !n.down() {
		return
	}
	if side := n.index % 2; w.down[side] {
		w.late[side] = append(w.late[side], n)
		return
	}
	if err := n.start(); err != nil {
		w.violatef("node %d does not start: %v", n.index, err)
	}
}

// guest returns how an endpoint comes that is nobody's, and how it goes.
func (w *world) guest(a *Action, index int) (come, leave func()) {
	number := 1000 + 2*index + (1 - a.To%2)
	var wire transport.Conn
	var ep *dgrdma.Endpoint
	come = func() {
		if w.down[number%2] {
			return
		}
		var err error
		if wire, err = w.g.attach(number, &Node{}); err == nil {
			ep, err = dgrdma.New(wire, &dgrdma.Config{
				ID: idOf(number), GiveUp: w.plan.GiveUp, Entropy: entropy(w.plan.Seed, number, 1), Keys: w.plan.guestKeys(number), Checksum: w.plan.damage() > 0,
			})
		}
		if err != nil {
			w.violatef("guest %d does not start: %v", number, err)
			return
		}
		c, err := ep.Connect(dgrdma.Peer{ID: idOf(a.To), Addr: w.g.addr(a.To)})
		if err != nil {
			w.violatef("guest %d: connect: %v", number, err)
			return
		}
		for i := range 5 {
			c.Post(&dgrdma.Transaction{
				Segments:   []dgrdma.Segment{{Addr: 0, Bytes: worlds.Table[i : i+1+100*i]}},
				Completion: dgrdma.Word(0, 1),
			}) // it may be refused already
		}
	}
	leave = func() {
		if ep == nil {
			return
		}
		if index%2 == 0 {
			wire.Close()
		}
		ep.Close()
	}
	w.leave = append(w.leave, leave)
	return come, leave
}

// strangers send what they like until the round is over.
func (w *world) strangers() {
	d := worlds.NewDice(w.plan.Seed, rollStrangers<<20)
	var id frame.EndpointID = firstGuest
	for w.over.Err() == nil {
		to := d.IntN(len(w.nodes))
		as := -1
		var b []byte
		if d.Chance(0.5) {
			kind := worlds.Forgery(d.IntN(int(worlds.Forgeries)))
			src := id
			if (kind != worlds.ForgedData || w.plan.Keys != NoKeys) && d.Chance(0.5) {
				if from := d.IntN(len(w.nodes)); Joined(from, to) {
					src, as = idOf(from), from
				}
			}
			b = worlds.Forge(d, kind, src, idOf(to), w.plan.MTU)
		} else if b = w.nodes[d.IntN(len(w.nodes))].sample(d.Uint64()); len(b) > 0 && d.Chance(0.7) {
			for range d.Between(1, 4) { // what was true once, but for some bits
				b[d.IntN(min(len(b), 64))] ^= 1 << d.IntN(8)
			}
			b = b[:len(b)-d.Pick(0, 0, 0, d.IntN(len(b)))]
		}
		if len(b) > 0 {
			w.g.inject(to, as, b)
			w.counts.fault("strangers' frames", 1)
		}
		w.sleep(w.plan.Stranger)
	}
}

// sample returns a frame that the node sent, or nil.
func (n *node) sample(which uint64) []byte {
	n.mu.Lock()
	g := n.gate
	n.mu.Unlock()
	return g.pick(which)
}
