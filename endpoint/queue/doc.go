// Package queue decides of which item bytes are built next: of all that is pushed to the flows of a connection. It
// promises no compatibility: it is for the engine, whose items are transactions. It has no goroutine, lock, clock or socket,
// and knows nothing of frames.
//
// The sender asks for the next item ([Queue.Next]), begins it ([Queue.Begin]), makes frames of as many of its bytes as it likes, and
// reports how many those were ([Queue.Built]). When the peer has acknowledged the item, or the sender gives it up, it is
// removed ([Queue.Remove]).
//
// # The rules
//
//  1. Items of a flow begin in the order in which they were pushed. An item is built as a whole before the next one of its flow begins.
//  2. Flows take turns in a ring, of [Quantum] bytes each. A flow that has nothing to be built loses its turn.
//  3. What is urgent passes all that has not begun and is not urgent, and what is left of items that are partial. When [MostPassing] in
//     a row have passed, one frame of a flow is next.
//  4. A fence waits until all that its flow has begun is removed. It holds back its own flow and no other. Urgent items do not count
//     as items of the flow, and a fence is never urgent.
//  5. At most [MostPartial] flows have a partial item. Urgent items do not count.
//  6. A [Queue.Strict] queue builds each item as a whole before another one begins.
//
// # Layout
//
//	entry.go     the place of an item in a queue, and chains of them
//	flow.go      which item of a flow is first, and whether it is fenced
//	turns.go     the ring of flows, and how much is left of a turn
//	urgent.go    how many urgent items pass in a row
//	partial.go   which flows have a partial item, and whether one more may
//	queue.go     all of it together: Push, Next, Begin, Built, Remove
//
// # Words
//
//	flow       items that begin in order
//	turn       a flow's right to be built, for a quantum of bytes
//	fence      an item that waits for those of its flow before it
//	urgent     passes all flows, within bounds
//	partial    of an item: it has begun, and is not built as a whole
package queue
