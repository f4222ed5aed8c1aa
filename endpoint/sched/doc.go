// Package sched says who runs an engine that sends and receives: which goroutine,
// and when. It promises no compatibility: it is for package endpoint.
//
// An [Engine] has two sides. Who receives takes a batch of datagrams from the
// transport and applies it; who sends packs what the items of work have to send and
// gives it to the transport. Each side is a turn, which one goroutine at a time has:
// the state that belongs to a side needs no lock.
//
// # Who drives
//
// [Scheduler.Start] makes two goroutines of the scheduler's own. One receives, and
// after each batch that asks for it sends too; the other sends what is queued by
// others, acts on deadlines, and delivers answers. Without Start nothing happens but
// in [Scheduler.Progress] and [Scheduler.Await]: Progress does once what both
// goroutines do, and Await does so until what it waits for is there.
//
// Who waits in Await may also take the turn to receive of a scheduler with
// goroutines of its own: to be woken for every message costs more than the message.
// Whether that pays the scheduler decides, see lending.go.
//
// # The rules
//
//  1. Who has the turn to receive alone calls [Engine.Receive] and [Engine.Apply].
//  2. Who has the turn to send alone calls [Engine.Serve] and [Engine.Flush]. Who
//     receives may claim it: its holder gives it up after the item at hand. One that the
//     transport holds up does not: the receiver goes on receiving after a moment.
//  3. The turn to receive is taken before the turn to send, and the turns before all
//     locks of the engine. The scheduler's own locks are leaves.
//  4. Work is listed before pending is set, and whoever gives up the turn to send, or
//     ends a batch, looks at pending afterwards and has it served if it is set.
//  5. Close has both turns when it returns, and never gives them back.
//
// # Callbacks that do not return
//
// Apply, Serve, Flush, Expire and Deliver call functions of the application. One that
// panics, or ends its goroutine, leaves half done what it was part of, so the
// scheduler breaks as when the transport fails: see [Scheduler.Break]. On the
// scheduler's own goroutines a panic ends the process, as any other.
package sched
