// Package bottleneck is the queue in front of the slowest transmitter of a
// path, which several flows share: a machine that is told the time.
//
// # Model
//
// Frames enter a [Queue], wait in the order in which they came, and leave one
// after the other, each when its last bit is out at the rate of that time:
//
//	q := bottleneck.New(bottleneck.Config{Rate: 20_000_000, Queue: 100_000}, drop)
//	flow := q.NewFlow()
//	q.Enter(now, flow, len(frame), false, frame)
//	for at, ok := q.Due(); ok && at <= now; at, ok = q.Due() {
//		send(q.Leave().What)
//	}
//
// The rate may change at given times, stand still, and be out of reach. The
// queue is bounded in bytes and drops at its tail. In addition it may be
// controlled by [CoDel], or mark what finds more than a threshold before it.
// Both mark frames that say that they can carry a mark (ECN); CoDel drops others.
//
// What happens after the queue, as the delay of the path and its losses, is
// the caller's. [GilbertElliott] says which frames are lost there in bursts.
//
// # Rules
//
// Times are since any instant, the same for all calls. Leave takes what is
// due before Enter is told a later time. Nothing is random but the losses of a
// [Chain], for which the caller draws. One goroutine at a time uses a Queue.
//
// # Limits
//
// A Queue holds Config.Queue bytes and one frame in transmission. A [Flow]
// takes 150 KB, for the distribution of its delays. Impossible configurations
// panic.
package bottleneck
