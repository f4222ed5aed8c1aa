// Package bench is the load generator: it keeps operations outstanding on whatever
// carries them, counts and times them, and verifies what arrives, so that different
// ways between two machines are measured by the same means.
//
// A [Load] is a closed loop: as many operations as [Plan.Active] says are outstanding,
// and each that is complete is posted again, with new contents, by whoever completes
// it. It is put on a [Poster], which posts operations and waits until they have
// arrived. There are these, and anything that posts and completes can be one more:
//
//   - transactions of one peer or of many, between a [Client] and a [Server] that count
//     and verify at both ends;
//   - work requests on one queue pair or on many (package verbs), between a [VerbsClient] and a
//     [VerbsServer]: Writes, Reads, Sends, atomic operations, Flushes;
//   - a link, message by message or by io.Copy: [DialLink] and [ServeLinks]; [ServerDrops] asks what was lost at the server;
//   - another [Carrier] between the same two ends, for comparison: Client.Rivals.
//
// Rivals take turns with the transactions or work requests, on the same memory. The server awaits them when
// the client says so, from the client's host alone. An [Outcome] has every turn, and what the
// machines did besides, without which a ratio means nothing. A rival over TCP has the congestion controller that short trials
// find to be the fastest, and the machine's default as well: [Choice].
//
// With [Plan.Rate] a load posts no faster than that, in bursts, and sleeps between them. The first operation waits its turn, too.
// [Sample] cuts a run into intervals.
//
// # Verification
//
// A transaction's bytes are a pattern of its slot, of how often that was used, and of
// the place in it, so that what is lost, doubled, torn or misplaced is noticed when the
// transaction completes: all of it with [VerifyFull]; with [VerifySample] a few words of
// each, which cost less than the network does, and now and then a whole one.
//
// Of what a Write or a Flush brings, the side that is written to hears nothing: it looks at each slot
// when the turn is over, and by then at the last use of it. With [VerifyFull] immediate data follows each, so that
// all are looked at, and an operation is complete when the other side has looked. A Send is looked at as it
// arrives; below eight bytes it does not say which it is, and only that it came is counted. What a Read brings is looked
// at by who reads, and so is what an atomic operation found; and the counters, when the turn is over.
package bench
