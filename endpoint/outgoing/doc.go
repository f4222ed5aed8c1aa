// Package outgoing has the memory of the frames that leave. It promises no compatibility: it is for the engine.
// It has no goroutine, clock or socket.
//
//   - A [Batch] collects the frames of one call of the transport. Its bounds are how many leave at once.
//   - [InFlight] holds the frames of a connection until they are acknowledged: a [Frame] has its bytes, or the [Part] of
//     which they are made again.
//   - [Lending] says from how many bytes on data leaves from the memory of the program, without a copy.
//
// # Slabs
//
// Frames lie side by side, in the order in which they were made, in slabs of 64 KiB: the transport gives many of them to the
// kernel as one piece of memory. All batches and connections take their slabs from one pool. A slab goes back to it when
// its batch was sent, or when the last frame in it is acknowledged. So the slab that is taken next was used a moment ago, and a
// connection at rest has none. A frame that is acknowledged while it is being sent keeps its slab until the batch has left.
//
// # Frames that are made again
//
// A frame that is filled by one part of a segment is made in the memory of the batch. Nothing of it is kept but its [Part]: if it is
// lost, it is made again from the transaction, whose bytes belong to the engine until it is done. All other frames are kept.
//
// # Layout
//
//	batch.go      the frames that are given to the transport at once
//	run.go        frames in a row that hold the parts of a segment in order
//	zero_copy.go  from how many bytes on data is not copied, and the memory that such frames refer to
//	in_flight.go  the frames of a connection until they are acknowledged
//	slab.go       the memory of both
//
// A batch belongs to the holder of the send lock, InFlight to the holder of the lock of its connection. Other goroutines may call
// [Batch.Number] and [Batch.IsLending].
package outgoing
