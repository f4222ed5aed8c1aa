package simnet

// ring is a first-in first-out queue that grows as needed and then stays.
type ring[T any] struct {
	slots []T // length is 0 or a power of two
	head  int
	count int
}

const firstRingSize = 64 // arbitrary

func (r *ring[T]) len() int { return r.count }

func (r *ring[T]) at(i int) *T { return &r.slots[(r.head+i)&(len(r.slots)-1)] }

// front and back return the oldest and the newest; there must be one.
func (r *ring[T]) front() T { return *r.at(0) }
func (r *ring[T]) back() T  { return *r.at(r.count - 1) }

func (r *ring[T]) push(v T) {
	if r.count == len(r.slots) {
		r.grow()
	}
	r.count++
	*r.at(r.count - 1) = v
}

// pop removes the oldest; there must be one.
func (r *ring[T]) pop() T {
	slot := r.at(0)
	v := *slot
	var zero T
	*slot = zero
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.count--
	return v
}

func (r *ring[T]) clear() { *r = ring[T]{} }

func (r *ring[T]) grow() {
	slots := make([]T, max(firstRingSize, 2*len(r.slots)))
	for i := range r.count {
		slots[i] = *r.at(i)
	}
	r.slots, r.head = slots, 0
}
