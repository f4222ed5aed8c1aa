// Package oracle knows what peers may do to a memory, byte by byte and for as long as one
// likes, in memory that does not grow.
//
// A memory is cut into slots. Each belongs to one flow of one peer, which fills it with a
// transaction at a time: some cuts of a pattern that follows from slot and number, and the
// number as completion word. The next one is begun when the one before is done. A [Book]
// notes what was posted, sees through [Memory] what is done to the memory, and reports as a
// violation:
//
//   - a message that was not posted, or from somebody else
//   - a byte that is placed twice, or is wrong when its transaction completes, or changes
//     afterwards, or lies where nothing was written
//   - a completion that comes twice, before its data, or out of an order that was asked for
//   - a transaction that is reported done and is not in memory
//   - what was meant for another life of the memory, or of its peer
//
// What fails may have been applied, whole or in part, until something of a later life of its
// peer was admitted.
package oracle
