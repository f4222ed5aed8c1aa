// Package admission decides what becomes of frames of unknown sources: senders to which an endpoint has no connection.
// It has no goroutine, lock, clock or socket. It promises no compatibility: it is for the engine.
//
//   - A [Gate] says of a frame whether it is refused, answered, or makes a peer. Its [Policy] says which sources may become peers.
//   - [Places] are those of the learned peers, which a frame of an unknown source made: how many there may be in all and of each host,
//     and which one is evicted for another.
//   - [Answers] are those that leave after a batch.
//
// # Bounds
//
// An unknown source has proven nothing, and any number of them may be one attacker. So these hold:
//
//   - Nothing is kept of a source that is no peer.
//   - No answer is longer than the frame that it answers, and no answer is answered.
//   - At most MostAnswers leave after a batch.
//   - No host takes all places, and only learned peers make room.
//   - All of it stays within the memory that package strangers allows.
package admission
