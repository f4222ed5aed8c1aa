package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world is a queue with a random load, and what the rules of the package say of it, as lists.
type world struct {
	rig
	seed  uint64
	r     *rand.Rand
	lanes []*lane // that of urgent items first, then one for each flow
	begun []*item // of all lanes, in order
	all   []*item
	made  int

	urgentOf int // of how many items one is urgent
	passed   int // urgent items that were built in a row, while another lane had something
}

// lane is a flow, or what is urgent.
type lane struct {
	flow    Flow[item] // none of what is urgent
	pushed  int        // to the flow, and not removed
	waiting []*item
	partial *item
	open    int
	waited  int // bytes of others that were built since something of this one could have been
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{rig: rig{T: t}, seed: seed, r: rand.New(rand.NewPCG(seed, 0))}
	w.Strict = w.r.IntN(4) == 0
	w.urgentOf = []int{8, 8, 8, 1}[seed%4]
	n := 1 + w.r.IntN(6)
	if w.r.IntN(4) == 0 {
		n = MostPartial + w.r.IntN(8)
	}
	for range 1 + n {
		w.lanes = append(w.lanes, new(lane))
	}
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.Helper()
	w.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// laneOf returns where an item waits.
func (w *world) laneOf(x *item) *lane {
	if x.entry.Urgent && !x.entry.Fence {
		return w.lanes[0]
	}
	return w.flowOf(x)
}

// flowOf returns the flow to which an item was pushed: its number is in the name.
func (w *world) flowOf(x *item) *lane {
	var flow, n int
	if _, err := fmt.Sscanf(x.name, "%d.%d", &flow, &n); err != nil {
		w.fatalf("%v", err)
	}
	return w.lanes[flow]
}

// first returns the item of a lane of which something may be built; nil: there is none.
func (l *lane) first() *item {
	switch {
	case l.partial != nil:
		return l.partial
	case len(l.waiting) == 0 || l.waiting[0].entry.Fence && l.open > 0:
		return nil
	}
	return l.waiting[0]
}

// candidates returns the items that may be next.
func (w *world) candidates() (all []*item) {
	for _, l := range w.lanes {
		if w.Strict && l.partial != nil {
			return []*item{l.partial}
		}
		if x := l.first(); x != nil {
			all = append(all, x)
		}
	}
	if x := w.lanes[0].first(); x != nil {
		if w.passed >= MostPassing && w.lanes[0].partial == nil && len(all) > 1 {
			return all[1:] // a flow has been passed often enough
		}
		return []*item{x}
	}
	return all
}

// partial returns how many flows have a partial item.
func (w *world) partial() (n int) {
	for _, l := range w.lanes[1:] {
		if l.partial != nil {
			n++
		}
	}
	return n
}

func (w *world) post() {
	flow := 1 + w.r.IntN(len(w.lanes)-1)
	w.made++
	x := &item{name: fmt.Sprintf("%d.%d", flow, w.made), left: 1 + w.r.IntN([]int{100, 1500, 50_000}[w.r.IntN(3)])}
	x.entry = Entry[item]{Item: x, Fence: w.r.IntN(5) == 0, Urgent: w.r.IntN(w.urgentOf) == 0 && w.r.IntN(8) > 0}
	before := w.Next()
	l := w.lanes[flow]
	l.pushed++
	w.all = append(w.all, x)
	to := w.laneOf(x)
	to.waiting = append(to.waiting, x)
	next := w.Push(&l.flow, &x.entry)
	if is := w.Next() == x; next != is || before == nil && next != (to.first() == x) || before != nil && !next && w.Next() != before {
		w.fatalf("Push of %v says that it is next: %v; before it was %v, now it is %v", x, next, before, w.Next())
	}
}

func (w *world) build() {
	x, may := w.Next(), w.candidates()
	if x == nil && len(may) > 0 || x != nil && !slices.Contains(may, x) {
		w.fatalf("next is %v, and one of these may be: %v", x, may)
	}
	if x == nil {
		return
	}
	some := w.partial()
	if most := x.entry.Urgent && !x.entry.Fence || some < MostPartial; w.MayLeavePartial(&x.entry) != most {
		w.fatalf("%d flows have a partial item; one more may: %v", some, !most)
	}
	turns := true
	if !x.entry.HasBegun() && (x.left > 1440 && !w.MayLeavePartial(&x.entry) || w.r.IntN(10) == 0) {
		turns = false
		if x = w.NextPartial(); x == nil && some > 0 || x != nil && w.laneOf(x).partial != x {
			w.fatalf("%v is partial, of %d", x, some)
		}
		if x == nil {
			return
		}
	}
	l := w.laneOf(x)
	if !x.entry.HasBegun() {
		for i, last := range w.begun {
			if joins := w.Joins(&last.entry, &x.entry); joins != (i == len(w.begun)-1) {
				w.fatalf("%v joins %v: %v, of %v", x, last, joins, w.begun)
			}
		}
		l.waiting = l.waiting[1:]
		l.open++
		w.begun = append(w.begun, x)
	}
	left, n := w.Left(&x.entry), min(x.left, 1440)
	w.rig.build(x, n)
	l.partial = nil
	if x.left > 0 {
		l.partial = x
	}
	switch {
	case l != w.lanes[0]:
		w.passed = 0
	case x.left == 0 && w.others(l):
		w.passed++
	}
	if l != w.lanes[0] && turns && !w.Strict && l.first() != nil && w.lanes[0].first() == nil {
		if goes := w.laneOf(w.Next()) == l; goes != (left > n) && w.others(l) {
			w.fatalf("%d bytes of %d of its turn are built, and the flow goes on: %v", n, left, goes)
		}
	}
	l.waited = 0
	if l == w.lanes[0] || !turns || w.Strict {
		return
	}
	for _, o := range w.lanes[1:] {
		if o == l || o.first() == nil {
			o.waited = 0
		} else if o.waited += n; o.waited > (len(w.lanes)-2)*(Quantum+1440) {
			w.fatalf("a flow waits for %d bytes of %d others", o.waited, len(w.lanes)-2)
		}
	}
}

// others reports whether something of another flow may be built.
func (w *world) others(l *lane) bool {
	return slices.ContainsFunc(w.lanes[1:], func(o *lane) bool { return o != l && o.first() != nil })
}

// done removes what is built as a whole, or takes back what has not begun.
func (w *world) done(taken bool) {
	if i := slices.IndexFunc(w.all, func(x *item) bool { return x.left == 0 || taken && !x.entry.HasBegun() }); i >= 0 {
		w.forget(w.all[i])
	}
}

// forget removes an item however much of it is built.
func (w *world) forget(x *item) {
	l := w.laneOf(x)
	w.flowOf(x).pushed--
	if x.entry.HasBegun() {
		l.open--
	}
	if l.partial == x {
		l.partial = nil
	}
	is := func(y *item) bool { return y == x }
	l.waiting = slices.DeleteFunc(l.waiting, is)
	w.begun = slices.DeleteFunc(w.begun, is)
	w.all = slices.DeleteFunc(w.all, is)
	if w.Remove(&x.entry); l.first() == nil {
		l.waited = 0 // it has lost its place
	}
}

func (w *world) check() {
	for _, l := range w.lanes[1:] {
		if n := l.flow.Len(); n != l.pushed {
			w.fatalf("%d items are of a flow, want %d", n, l.pushed)
		}
	}
	var begun []*item
	for x := w.Oldest(); x != nil; x = x.entry.Next() {
		begun = append(begun, x)
	}
	waiting := slices.Collect(w.Waiting())
	if w.Len() != len(w.all) || !slices.Equal(begun, w.begun) || len(waiting)+len(begun) != len(w.all) {
		w.fatalf("%d items; have begun: %v, want %v; wait: %v of %v", w.Len(), begun, w.begun, waiting, w.all)
	}
	for _, x := range waiting {
		if x.entry.HasBegun() || !slices.Contains(w.all, x) {
			w.fatalf("%v waits, of %v", x, w.all)
		}
	}
	for _, x := range w.all {
		if !x.entry.IsQueued() {
			w.fatalf("%v is in no queue", x)
		}
	}
}

// TestModel checks that a queue agrees with its rules, whatever is pushed, built and removed.
func TestModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for i := range uint64(300) {
		w := newWorld(t, seed+i)
		for range 400 {
			switch w.r.IntN(6) {
			case 0, 1:
				w.post()
			case 2, 3, 4:
				w.build()
			default:
				if w.r.IntN(4) == 0 && len(w.all) > 0 {
					w.forget(w.all[w.r.IntN(len(w.all))])
				} else {
					w.done(w.r.IntN(4) == 0)
				}
			}
			w.check()
		}
		if w.r.IntN(2) == 0 {
			for len(w.all) > 0 {
				w.forget(w.all[w.r.IntN(len(w.all))])
				w.check()
			}
		}
		for len(w.all) > 0 { // all of it can be built and removed
			w.build()
			w.done(false)
		}
		w.check()
		if x := w.Next(); x != nil || w.turns.cur != nil || w.fences.cur != nil || w.NextPartial() != nil {
			w.fatalf("%v is left", x)
		}
	}
}
