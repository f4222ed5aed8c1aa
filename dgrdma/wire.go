package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/frame"
)

// wire is how frames to a peer are written, and how those of the peer are acknowledged in them. Guarded by the
// connection's mutex.
type wire interface {
	// start begins with a peer, or begins again: nothing is in flight, and nothing is owed to it.
	start(now ack.Instant)
	// forget forgets all frames in flight. None of their ids is used again soon.
	forget(now ack.Instant)
	// resume begins ids after a Reset that asked for one, or for none: 0.
	resume(now ack.Instant, asked frame.Seq)
	// settle counts a frame as acknowledged by a peer that never acknowledges. It reports whether it was in flight.
	settle(now ack.Instant, id uint32) bool
	// buildProbe adds what has a peer speak after a timeout, if there is such a thing.
	buildProbe(b *outgoing.Batch, now ack.Instant)
	// head writes the header of a frame with messages, and reports whether it takes an acknowledgement along.
	head(b []byte, id uint32, copied uint8) (carried bool)
	// headAgain makes the header of a kept frame that of another copy. It reports the same.
	headAgain(b []byte, id uint32, copied uint8) (carried bool)
	// run returns what writes the headers of frames that go on where one ended: the frame with that id, which had message m alone.
	run(id uint32, m *frame.Message) frameRun
	// ackAt returns when an acknowledgement has to leave by itself, if one is owed.
	ackAt() (at ack.Instant, owed bool)
	// buildAck sends it, and reports that, or holds all that is owed back.
	buildAck(b *outgoing.Batch, now ack.Instant) (sent bool)
}

// frameRun writes the headers of frames, each of which goes on where the one before ended.
type frameRun interface {
	Next(m *frame.Message)
	Put(b []byte)
	Size() int
}
