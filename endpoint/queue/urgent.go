package queue

// MostPassing is how many urgent items in a row pass what waits in flows. Then one frame of a flow is next: programs that post urgent
// items without end, as letters that follow each other, would hold up all flows for ever where the window is one frame. Arbitrary.
const MostPassing = 16

// urgentYields reports whether urgent items have passed so many times that a flow is next.
func (q *Queue[T]) urgentYields() bool {
	return q.passed >= MostPassing && q.urgent.partial == nil && q.turns.cur != nil
}

// PassAgain lets urgent items pass again without a frame of a flow in between, as what Next returned may not leave. It reports whether
// Next returns something else now.
func (q *Queue[T]) PassAgain() bool {
	yields := q.urgent.first() != nil && q.urgentYields()
	q.passed = 0
	return yields
}

// NextOfFlows returns the item that is to be built next of those that are not urgent; nil: there is none.
func (q *Queue[T]) NextOfFlows() *T {
	if f := q.turns.cur; f != nil {
		return f.first().Item
	}
	return nil
}
