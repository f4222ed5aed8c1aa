// Package reassembly has the incoming transactions of which messages are missing: a [Table] for each peer.
// What is kept of them is charged to the peer's [Holding], and to the [Pool] that all learned peers share. It has
// no goroutine, lock, clock or socket.
//
// The messages of a transaction are counted. That none is counted twice is kept by the receiver of
// frames, which applies each frame once.
package reassembly
