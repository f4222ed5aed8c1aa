package queue

// Flow holds items that begin in the order in which they were pushed. The zero Flow is empty.
type Flow[T any] struct {
	n          int       // pushed and not removed, urgent ones included
	waiting    chain[T]  // not begun
	partial    *Entry[T] // begun, and not built as a whole
	open       int       // begun and not removed
	place      int       // in Queue.partial, from 1; 0: none
	ring       *ring[T]  // in which it is; nil: nothing is to be built
	prev, next *Flow[T]  // there
}

// Len returns how many items were pushed to the flow and not removed, urgent ones included.
func (f *Flow[T]) Len() int { return f.n }

// first returns the item of which bytes are to be built first; nil: there is none.
func (f *Flow[T]) first() *Entry[T] {
	if f.partial != nil {
		return f.partial
	}
	return f.waiting.head
}

// isFenced reports whether the first item, which is there, has to wait until the others are removed.
func (f *Flow[T]) isFenced() bool {
	e := f.first()
	return !e.begun && e.Fence && f.open > 0
}
