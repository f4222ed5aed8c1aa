package endpoint

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// lanesModel holds lanes against what they promise: within a flow all begins in order,
// one flow's part is packed whole before its next begins, fences wait for their flow and
// nothing else, what is urgent passes what has not begun, and turns are fair.
type lanesModel struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	l      lanes
	flows  []*Flow
	left   map[*Transaction]int // bytes to be packed
	queued map[*Flow][]*Transaction
	begun  map[*Flow][]*Transaction // begun and not done, by the lane
	all    []*Transaction
	waited map[*Flow]int // bytes of others that were packed since this one could have been
}

func newLanesModel(t *testing.T, seed uint64, strict bool) *lanesModel {
	m := &lanesModel{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), left: make(map[*Transaction]int),
		queued: make(map[*Flow][]*Transaction), begun: make(map[*Flow][]*Transaction), waited: make(map[*Flow]int),
	}
	m.l.strict = strict
	for range 1 + m.r.IntN(6) {
		m.flows = append(m.flows, new(Flow))
	}
	return m
}

func (m *lanesModel) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d: "+format, append([]any{m.seed}, args...)...)
}

func (m *lanesModel) post() {
	x := &Transaction{Fence: m.r.IntN(5) == 0, Urgent: m.r.IntN(8) == 0}
	f := m.flows[m.r.IntN(len(m.flows))]
	m.left[x] = 1 + m.r.IntN([]int{100, 1500, 50_000}[m.r.IntN(3)])
	m.l.push(f, x)
	q := m.l.queue(x)
	m.queued[q] = append(m.queued[q], x)
	m.all = append(m.all, x)
}

// may reports whether a lane has something that may be packed.
func (m *lanesModel) may(q *Flow, others bool) bool {
	if q.part != nil {
		return true
	}
	w := m.queued[q]
	return others && len(w) > 0 && !(w[0].Fence && len(m.begun[q]) > 0)
}

func (m *lanesModel) pack() {
	others := m.r.IntN(10) > 0
	q := m.l.turn()
	if q != nil && q.part == nil && !others {
		q = m.l.turnBegun()
	}
	lanes := append([]*Flow{&m.l.urgent}, m.flows...)
	part := -1
	for i, q := range lanes {
		if q.part != nil {
			part = i
		}
	}
	if q == nil {
		for _, q := range lanes {
			if m.may(q, others) {
				m.fatalf("nothing is packed, and something could be")
			}
		}
		return
	}
	x := q.first()
	switch {
	case m.l.strict && part >= 0 && !x.begun:
		m.fatalf("a transaction begins amid another one")
	case !m.may(q, others):
		m.fatalf("what is packed has to wait")
	case !(m.l.strict && part >= 0) && q != &m.l.urgent && m.may(&m.l.urgent, others):
		m.fatalf("something urgent waits")
	case q != m.l.queue(x):
		m.fatalf("a flow has the turn, and not what is first in it")
	case !x.begun && x != m.queued[q][0], x.begun && x != q.part:
		m.fatalf("it is not the turn of this one in its flow")
	}
	if !x.begun {
		x.begun = true
		m.l.begin(q)
		m.queued[q] = m.queued[q][1:]
		m.begun[q] = append(m.begun[q], x)
	}
	n := min(m.left[x], 1440)
	m.left[x] -= n
	x.complete = m.left[x] == 0
	m.l.packed(q, x, n)
	m.waited[q] = 0
	if q == &m.l.urgent || !others || m.l.strict {
		return
	}
	for _, f := range m.flows {
		if f == q || !m.may(f, true) {
			m.waited[f] = 0
			continue
		}
		if m.waited[f] += n; m.waited[f] > (len(m.flows)-1)*(turnBytes+1440) {
			m.fatalf("a flow waited for %d bytes of %d others", m.waited[f], len(m.flows)-1)
		}
	}
}

// done finishes what is complete, or takes back what has not begun.
func (m *lanesModel) done(taken bool) {
	i := slices.IndexFunc(m.all, func(x *Transaction) bool { return x.complete || taken && !x.begun })
	if i < 0 {
		return
	}
	m.forget(m.all[i])
}

func (m *lanesModel) forget(x *Transaction) {
	q := m.l.queue(x)
	f := x.flow
	before := f.n
	m.l.remove(x)
	if f.n != before-1 || m.l.has(x) {
		m.fatalf("removed, and still there")
	}
	is := func(y *Transaction) bool { return y == x }
	m.queued[q] = slices.DeleteFunc(m.queued[q], is)
	m.begun[q] = slices.DeleteFunc(m.begun[q], is)
	m.all = slices.DeleteFunc(m.all, is)
	if !m.may(q, true) {
		m.waited[q] = 0 // it has lost its place
	}
}

func (m *lanesModel) check() {
	if m.l.n != len(m.all) {
		m.fatalf("%d transactions, want %d", m.l.n, len(m.all))
	}
	amid := 0
	for _, q := range m.flows {
		if q.part != nil {
			amid++
		}
		if (q.part != nil) != (q.amid > 0) || q.amid > 0 && m.l.amid[q.amid-1] != q {
			m.fatalf("a flow has place %d among %d that are amid a transaction", q.amid, len(m.l.amid))
		}
	}
	if amid != len(m.l.amid) {
		m.fatalf("%d flows are amid a transaction, want %d", len(m.l.amid), amid)
	}
	waiting := 0
	for range m.l.waiting() {
		waiting++
	}
	begun := 0
	for x := m.l.begun.head; x != nil; x = x.next {
		begun++
	}
	if waiting+begun != len(m.all) {
		m.fatalf("%d wait and %d have begun, of %d", waiting, begun, len(m.all))
	}
}

func TestLanes(t *testing.T) {
	for i := range uint64(300) {
		seed := rand.Uint64() + i
		m := newLanesModel(t, seed, i%4 == 0)
		for range 400 {
			switch m.r.IntN(6) {
			case 0, 1:
				m.post()
			case 2, 3, 4:
				m.pack()
			default:
				m.done(m.r.IntN(4) == 0)
			}
			m.check()
		}
		if i%2 == 0 {
			for x := m.l.some(); x != nil; x = m.l.some() {
				m.forget(x)
			}
			if n := len(m.all); n > 0 {
				m.fatalf("%d are left, and none is found", n)
			}
		}
		for len(m.all) > 0 { // all of it can be packed and be done
			m.pack()
			m.done(false)
		}
		m.check()
		if m.l.some() != nil || m.l.turn() != nil || m.l.turns.cur != nil || m.l.fences.cur != nil {
			m.fatalf("something is left")
		}
	}
}

// TestFramesKnowNeighbours: a frame holds transactions that began one after the other, and
// what has begun goes on only at the beginning of one.
func TestFramesKnowNeighbours(t *testing.T) {
	var l lanes
	var f, g Flow
	x := [4]*Transaction{{}, {}, {}, {}}
	for i, q := range []*Flow{&f, &g, &f, &g} {
		l.push(q, x[i])
	}
	begin := func(i int) { x[i].begun = true; l.begin(x[i].flow) }
	for begun := range 3 {
		if !l.joins(nil, x[0]) || !l.joins(nil, x[2]) {
			t.Error("an empty frame takes none")
		}
		for last := range begun {
			for next := range x {
				if want := next >= begun && last == begun-1; l.joins(x[last], x[next]) != want {
					t.Errorf("of %d, %d joins %d: %v", begun, next, last, !want)
				}
			}
		}
		begin(begun)
	}
}

// TestTurnsAreWhole: a flow has all of its turn, whatever of it the one before it left, and
// no more.
func TestTurnsAreWhole(t *testing.T) {
	for _, used := range []int{0, 1000, turnBytes - 1} {
		for _, beside := range []bool{false, true} {
			var l lanes
			var short, f, g Flow
			begin := func(q *Flow) {
				x := &Transaction{}
				l.push(q, x)
				x.begun = true
				l.begin(q)
				l.enter(q, x)
			}
			if used > 0 {
				begin(&short)
			}
			if beside {
				begin(&f)
				begin(&g)
			}
			if x := short.part; x != nil {
				x.complete = used < turnBytes-1
				l.packed(&short, x, used)
				l.remove(x) // its turn ends
			}
			if !beside {
				begin(&f)
				begin(&g)
			}
			for i, q := range []*Flow{&f, &g, &f} {
				for left := turnBytes; left > 0; left -= turnBytes / 4 {
					if l.turn() != q {
						t.Fatalf("turn %d is over with %d bytes left, or not with none", i, left)
					}
					l.packed(q, q.part, turnBytes/4)
				}
			}
		}
	}
}
