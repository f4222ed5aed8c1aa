// Package run decides which goroutine runs an engine that sends and receives, and when.
// It promises no compatibility: it is for package dgrdma.
//
// An [Engine] has two sides, each with a lock. The holder of the receive lock takes a
// batch of datagrams from the transport and applies it. The holder of the send lock packs
// what the items of work have to send and gives it to the transport. The state that
// belongs to a side needs no other lock.
//
// # Pollers
//
// A poller is a goroutine that runs the engine.
//
//   - [Scheduler.Start] makes two: the receive goroutine, which also sends after each batch
//     that calls for it, and the send goroutine. The send goroutine serves what other
//     goroutines queue, acts on deadlines, and delivers answers.
//   - A caller of [Scheduler.Progress] does once what both do.
//   - Without Start, a caller of [Scheduler.Await] does so until its wait is over.
//   - With Start, a caller of Await may poll in place of the receive goroutine, which hands
//     the receive lock over to it: to be woken for every message costs more than the
//     message. The scheduler decides whether that pays, see handover.go.
//
// # The rules
//
//  1. [Engine.Receive] and [Engine.Apply] are called by the holder of the receive lock only.
//  2. [Engine.Serve] and [Engine.Flush] are called by the holder of the send lock only. The
//     holder of the receive lock may claim it: its holder releases it after the item at
//     hand. A holder that the transport blocks does not: the claim ends after a moment, and
//     the receiver goes on.
//  3. The order of locks is receive lock, send lock, locks of the engine. The scheduler's
//     other locks are leaves.
//  4. An item is listed before pending is set. A goroutine that released the send lock, or
//     ended a batch, then looks at pending, and has the work served if it is set.
//  5. Close holds both locks when it returns, and never releases them.
//
// # Callbacks that panic
//
// The calls of an engine run callbacks of the program. A panic in one ends the program,
// unless it is on a goroutine of the program's that recovers it, as those of net/http do.
// Apply, Reply, Serve, Flush or Expire is half done then: to go on would apply a part of a
// frame twice. So the scheduler breaks, as when the transport fails: see [Scheduler.Break].
// The locks are free, so that a deferred Close does not keep the panic from the program.
//
// # Words
//
//	receive lock     the right to call Receive and Apply
//	send lock        the right to call Serve and Flush
//	claim            ask the holder of the send lock to release it
//	poller           a goroutine that runs the engine
//	caller polling   a caller of Await receives for all in place of the receive goroutine
//	handover         the receive goroutine leaves the receive lock to callers that poll
//	break            end all sending and receiving for a reason
package run
