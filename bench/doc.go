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
//   - a link, message by message or by io.Copy: [DialLink] and [ServeLinks];
//   - another [Carrier] between the same two ends, for comparison: Client.Rivals.
//
// Rivals take turns with the transactions, on the same memory. The server awaits them when
// the client says so, from the client's host alone. An [Outcome] has every turn, and what the
// machines did besides, without which a ratio means nothing.
//
// With [Plan.Rate] a load posts no faster than that, in bursts, and sleeps between them.
// [Sample] cuts a run into intervals.
//
// # Verification
//
// A transaction's bytes are a pattern of its slot, of how often that was used, and of
// the place in it, so that what is lost, doubled, torn or misplaced is noticed when the
// transaction completes: all of it with [VerifyFull]; with [VerifySample] a few words of
// each, which cost less than the network does, and now and then a whole one.
package bench
