package queue

import "iter"

// Queue is what is posted on a connection. Items wait in flows. The flows take turns in a ring, of a [Quantum] of bytes each: deficit
// round robin (Shreedhar and Varghese, 1995) without the deficit, as no turn overruns by more than a frame. The zero
// Queue is empty.
type Queue[T any] struct {
	// Strict has each item built as a whole before another one begins, urgent or not. It is set before Push.
	Strict bool

	n       int        // of them all
	begun   chain[T]   // in the order in which they began; not all of them need be in frames
	urgent  Flow[T]    // what is urgent waits here, whatever flow it is of
	turns   ring[T]    // flows of which something may be built
	fences  ring[T]    // flows that wait until what they have begun is removed
	partial []*Flow[T] // flows with a partial item, but for urgent
	quota   int        // bytes that are left of the turn
	passed  int        // urgent items in a row that were built while others waited
}

// Len returns how many items were pushed and not removed.
func (q *Queue[T]) Len() int { return q.n }

// Oldest returns the item that began first of those that are there; nil: none has begun. [Entry.Next] leads to the others.
func (q *Queue[T]) Oldest() *T { return q.begun.head.item() }

// Push adds an item to a flow, and reports whether it is what Next returns now.
func (q *Queue[T]) Push(f *Flow[T], e *Entry[T]) (next bool) {
	e.flow, e.begun = f, false
	f.n++
	w := q.flowOf(e)
	w.waiting.push(e)
	q.n++
	if w.ring == nil { // else what is first in it is what was
		q.place(w)
	}
	return w.first() == e && q.next() == w
}

// Next returns the item that is to be built next; nil: there is none.
func (q *Queue[T]) Next() *T {
	f := q.next()
	if f == nil {
		return nil
	}
	return f.first().Item
}

// next returns the flow whose first item is next.
func (q *Queue[T]) next() *Flow[T] {
	switch {
	case q.Strict && len(q.partial) > 0: // no more than one has, and nothing urgent has begun as well
		return q.partial[0]
	case q.urgent.first() != nil && !q.urgentYields():
		return &q.urgent
	}
	return q.turns.cur
}

// Begin notes that an item begins, which Next returned and which has not begun. A call of Built follows.
func (q *Queue[T]) Begin(e *Entry[T]) {
	f := q.flowOf(e)
	f.waiting.remove(e)
	e.begun = true
	q.begun.push(e)
	f.open++
}

// Joins reports whether bytes of e may follow those of last, which is nil or has begun, in a frame: a frame holds items
// that began one after the other, and a partial one goes on with a frame of its own, as was counted
// when it began.
func (q *Queue[T]) Joins(last, e *Entry[T]) bool {
	return last == nil || !e.begun && q.begun.tail == last
}

// Built notes that so many bytes of an item, which is partial or began last, are in frames; whole: that all
// of it is.
func (q *Queue[T]) Built(e *Entry[T], bytes int, whole bool) {
	f := q.flowOf(e)
	switch {
	case !whole && f.partial == nil:
		q.enter(f, e)
	case whole:
		if f == &q.urgent && q.turns.cur != nil {
			q.passed++
		}
		if f.partial != nil {
			q.leave(f)
		}
		if h := f.waiting.head; h == nil || h.Fence {
			q.place(f)
		}
	}
	if f != &q.urgent {
		q.passed = 0
	}
	q.spend(f, bytes)
}

// Remove takes an item out, which is there, however much of it is built.
func (q *Queue[T]) Remove(e *Entry[T]) {
	f := q.flowOf(e)
	e.flow.n--
	e.flow = nil
	q.n--
	if !e.begun {
		f.waiting.remove(e)
		q.place(f)
		return
	}
	q.begun.remove(e)
	f.open--
	if f.partial == e {
		q.leave(f)
		q.place(f)
	} else if f.ring == &q.fences {
		q.place(f)
	}
}

// Waiting returns the items that have not begun. None is pushed or removed before the loop has ended.
func (q *Queue[T]) Waiting() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for e := q.urgent.waiting.head; e != nil; e = e.next {
			if !yield(e.Item) {
				return
			}
		}
		for _, r := range [...]*ring[T]{&q.turns, &q.fences} {
			for f := range r.all() {
				for e := f.waiting.head; e != nil; e = e.next {
					if !yield(e.Item) {
						return
					}
				}
			}
		}
	}
}

// flowOf returns the flow in which an item waits, and of which it is built.
func (q *Queue[T]) flowOf(e *Entry[T]) *Flow[T] {
	if e.passes() {
		return &q.urgent
	}
	return e.flow
}
