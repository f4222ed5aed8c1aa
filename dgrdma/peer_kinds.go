package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Peers of our own kind have sessions, which each of their frames names, so that
// nothing is mistaken for something else: see [sessionPeer]. Others do not, and each has ways
// of its own: see [foreignPeer]. Which endpoint is at an address is asked by a third kind: see [discoveryConn]. A connection
// is made for one of them.

// kind is what the kinds of peers differ in, where both halves of a connection meet.
type kind interface {
	// isPeer reports whether there is a peer, to be counted, listed and told of.
	isPeer() bool
	// exchange tells the sending half what the receiving half learnt in a batch, and the
	// other way round. It returns how many frames of the peer are given up. Guarded by
	// the connection's mutex, with the turn to receive.
	exchange(now ack.Instant) (missed int)
	// acknowledge applies what the peer acknowledged in a batch. Guarded by the same lock.
	acknowledge(now ack.Instant, fin *finished)
	// scheduleAck has the sending half acknowledge what the receiving half got in a batch. Guarded by the same lock.
	scheduleAck(now ack.Instant)
	// gone returns why the peer is gone or never was there. It is asked where receiving.departs is set, and what
	// the batch acknowledged has been told, and may set it for the next batch. Guarded by the same lock.
	gone() error
}

// sendingKind is what they differ in where frames are sent. It also says in the sending
// half whether the peer takes data: see sending.ready and proven. Guarded by the
// connection's mutex.
type sendingKind interface {
	// begin draws what the peer is to know the sending half by.
	begin(now ack.Instant)
	// hurry is told that something was posted where nothing was.
	hurry(now ack.Instant)
	// serves returns why nothing, or no letter, can be posted to a service of the peer, or
	// nil.
	serves(name frame.ServiceName, letter bool) error
	// base returns where that service begins at the peer.
	base(name frame.ServiceName) uint32
	// tellAgain has the peer told the local id again, and reports whether it is.
	tellAgain(now ack.Instant) bool
	// failed is told that the connection failed, or is closed.
	failed(now ack.Instant)
	// connected is told that the program connects to the peer, which had come by itself.
	connected(now ack.Instant)
	// keyed is told that there is a key under which all is sealed from now on.
	keyed(now ack.Instant)
	// next reports whether there is something other than data to be sent now, and if not, when
	// there will be, or when overdue wants to be asked.
	next(now ack.Instant) (send bool, at ack.Instant)
	// introduce adds that to the batch, and reports whether
	// the batch became full before.
	introduce(b *outgoing.Batch, now ack.Instant) (full bool)
	// buildDisconnect adds to the batch that nothing of ours comes any more, if the peer is one
	// that is told so. There is room.
	buildDisconnect(b *outgoing.Batch, now ack.Instant)
	// overdue returns how many frames of the peer are given up at this moment, and why
	// the peer is, if it is. All that came before heard, which is not later, has been looked at.
	overdue(now, heard ack.Instant) (missed int, why error)
	// refusal returns why the peer takes no session, if it said so.
	refusal() error
	// epochs returns those of both sides, as far as they are known.
	epochs() (mine, theirs session.Epoch)
}

// receivingKind is what they differ in where frames are received. It belongs to the goroutine that has
// the turn to receive.
type receivingKind interface {
	// forget begins again with the peer.
	forget()
	// receive acts on a frame of v1.07, and reports whether its messages were applied.
	receive(now ack.Instant, f *frame.Frame) (why Reason, applied bool)
	// follow applies the frames that go on where f ended, whose messages were applied just now, and returns how many.
	follow(now ack.Instant, f *frame.Frame, rest []transport.Datagram, from *transport.Addr) (n int)
	// dropBatch forgets what the peer acknowledged in this batch, and what is to be acknowledged to it.
	dropBatch()
	// introduced reports whether there is a session, if the peer is one that has sessions.
	introduced() bool
}
