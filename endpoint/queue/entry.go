package queue

// Entry is the place of an item in a queue. The owner of the item sets the exported fields before Push, and leaves them
// until Remove.
type Entry[T any] struct {
	Item   *T
	Fence  bool // begins when all that its flow has begun is removed
	Urgent bool // passes all that has not begun and is not urgent; with Fence it does nothing

	begun      bool
	flow       *Flow[T] // to which it was pushed; nil: it is in no queue
	prev, next *Entry[T]
}

// IsQueued reports whether the item is in a queue.
func (e *Entry[T]) IsQueued() bool { return e.flow != nil }

// HasBegun reports whether the item has begun. It stays so when the item is removed.
func (e *Entry[T]) HasBegun() bool { return e.begun }

// Next returns the item that began after this one, which has begun; nil: there is none.
func (e *Entry[T]) Next() *T { return e.next.item() }

// item returns the item of an entry; nil: there is no entry.
func (e *Entry[T]) item() *T {
	if e == nil {
		return nil
	}
	return e.Item
}

// passes reports whether the item passes those that are not urgent.
func (e *Entry[T]) passes() bool { return e.Urgent && !e.Fence }

// chain is a list of entries. An entry is in one at most.
type chain[T any] struct{ head, tail *Entry[T] }

func (c *chain[T]) push(e *Entry[T]) {
	e.prev, e.next = c.tail, nil
	if c.tail == nil {
		c.head = e
	} else {
		c.tail.next = e
	}
	c.tail = e
}

func (c *chain[T]) remove(e *Entry[T]) {
	if e.prev == nil {
		c.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		c.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}
