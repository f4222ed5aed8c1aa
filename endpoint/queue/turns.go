package queue

import (
	"iter"
	"math"
)

// Quantum is how many bytes of one flow are built before the next flow has its turn.
// Arbitrary: eleven full frames on Ethernet, which take 1 Gbit/s 0.13 ms.
const Quantum = 16 << 10

// Left returns how many bytes of an item, which Next returned, may be built in a row before Next returns another one.
func (q *Queue[T]) Left(e *Entry[T]) int {
	if q.flowOf(e) != q.turns.cur {
		return math.MaxInt
	}
	return q.quota
}

// InARow returns how many bytes may be built in a row of an item that is next: more than are left of the turn where the next turn would be its flow's, too.
func (q *Queue[T]) InARow(e *Entry[T]) int {
	if f := q.flowOf(e); f.next == f {
		return math.MaxInt
	}
	return q.Left(e)
}

// spend takes bytes of a flow from its turn, if it has it.
func (q *Queue[T]) spend(f *Flow[T], bytes int) {
	if f == q.turns.cur {
		if q.quota -= bytes; q.quota <= 0 {
			q.turns.cur, q.quota = f.next, Quantum
		}
	}
}

// place puts a flow into the ring where it belongs.
func (q *Queue[T]) place(f *Flow[T]) {
	var where *ring[T]
	switch {
	case f == &q.urgent || f.first() == nil:
	case f.isFenced():
		where = &q.fences
	default:
		where = &q.turns
	}
	if where == f.ring {
		return
	}
	if f.ring != nil {
		if f == q.turns.cur {
			q.quota = Quantum
		}
		f.ring.remove(f)
	}
	if where != nil {
		if q.turns.cur == nil {
			q.quota = Quantum
		}
		where.add(f)
	}
}

// ring is a ring of flows.
type ring[T any] struct{ cur *Flow[T] }

// add puts a flow after all others.
func (r *ring[T]) add(f *Flow[T]) {
	f.ring = r
	if r.cur == nil {
		r.cur, f.prev = f, f
	}
	f.prev, f.next = r.cur.prev, r.cur
	f.prev.next, f.next.prev = f, f
}

func (r *ring[T]) remove(f *Flow[T]) {
	if f.next == f {
		r.cur = nil
	} else {
		f.prev.next, f.next.prev = f.next, f.prev
		if r.cur == f {
			r.cur = f.next
		}
	}
	f.ring, f.prev, f.next = nil, nil, nil
}

func (r *ring[T]) all() iter.Seq[*Flow[T]] {
	return func(yield func(*Flow[T]) bool) {
		for f := r.cur; f != nil; {
			if !yield(f) {
				return
			}
			if f = f.next; f == r.cur {
				return
			}
		}
	}
}
