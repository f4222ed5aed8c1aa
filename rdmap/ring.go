package rdmap

// ring is a queue of at most cap entries, whose places are counted on for ever: entry i
// keeps its number until it is dropped.
type ring[T any] struct {
	entries []T
	head    uint32 // the oldest entry
	tail    uint32 // the next to be added
}

// newRing makes a ring for n entries, n of at least 1.
func newRing[T any](n int) ring[T] {
	size := 1
	for size < n {
		size *= 2
	}
	return ring[T]{entries: make([]T, size)}
}

func (r *ring[T]) len() int { return int(r.tail - r.head) }

// at returns entry i, which is between head and tail.
func (r *ring[T]) at(i uint32) *T { return &r.entries[i&uint32(len(r.entries)-1)] }

// add returns the place of a new entry, which holds what was there before.
func (r *ring[T]) add() *T {
	e := r.at(r.tail)
	r.tail++
	return e
}

// has says that entry i is there.
func (r *ring[T]) has(i uint32) bool { return i-r.head < r.tail-r.head }
