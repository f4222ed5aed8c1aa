package queue

// MostPartial is how many flows may have a partial item: the peer has to keep each of those open, of which it may keep no more
// than a few, see reassembly.Reserve. What fits a frame does not count. Arbitrary.
const MostPartial = 32

// NextPartial returns an item that is partial, for where the one that Next returned may not begin: so nothing urgent
// has begun, and in a Strict queue nothing at all. nil: there is none.
func (q *Queue[T]) NextPartial() *T {
	if len(q.partial) == 0 {
		return nil
	}
	return q.partial[0].partial.Item
}

// MayLeavePartial reports whether an item, which has not begun, may be partial.
func (q *Queue[T]) MayLeavePartial(e *Entry[T]) bool {
	return e.passes() || len(q.partial) < MostPartial
}

// enter notes that a flow has that partial item.
func (q *Queue[T]) enter(f *Flow[T], e *Entry[T]) {
	f.partial = e
	if f != &q.urgent {
		q.partial = append(q.partial, f)
		f.place = len(q.partial)
	}
}

// leave notes that a flow has no partial item any more.
func (q *Queue[T]) leave(f *Flow[T]) {
	f.partial = nil
	if f == &q.urgent {
		return
	}
	last := len(q.partial) - 1
	moved := q.partial[last]
	q.partial[f.place-1], moved.place = moved, f.place
	q.partial[last], q.partial = nil, q.partial[:last]
	f.place = 0
}
