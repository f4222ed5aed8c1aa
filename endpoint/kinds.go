package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// Peers of our own kind introduce each of their lives, and number what they send so that
// nothing is mistaken for something else: see [native]. Others do not, and each has ways
// of its own: see [foreign]. Who is at an address is asked by a third kind: see [inquiring]. A connection
// is made for one of them.

// kind is what the kinds of peers differ in, where both halves of a connection meet.
type kind interface {
	// isPeer reports whether there is a peer, to be counted, listed and told of.
	isPeer() bool
	// exchange tells the sending half what the receiving half learnt in a batch, and the
	// other way round. It returns how many frames of the peer are given up. Guarded by
	// the connection's mutex, with the turn to receive.
	exchange(now ack.Instant) (missed int)
	// acknowledge applies what the peer acknowledged in a batch. Guarded likewise.
	acknowledge(now ack.Instant, fin *finished)
	// owe has the sending half acknowledge what the receiving half got in a batch. Guarded likewise.
	owe(now ack.Instant)
	// gone returns why the peer is gone or never was there. It is asked where receiving.departs is set, and what
	// the batch acknowledged has been told, and may set it for the next batch. Guarded likewise.
	gone() error
}

// sendingKind is what they differ in where frames are sent. It also says in the sending
// half whether the peer takes data: see sending.ready and proven. Guarded by the
// connection's mutex.
type sendingKind interface {
	// first returns where ids begin, for a random number.
	first(random ack.Wide) ack.Wide
	// resume returns where they begin after a Reset that asked for an id, or for none
	// (0), and would go on at next.
	resume(next ack.Wide, asked frame.Seq) ack.Wide
	// renumbered is told that ids begin at first.
	renumbered(first frame.Seq)
	// begin draws what the peer is to know the sending half by.
	begin(now ack.Instant)
	// hurry is told that something was posted where nothing was.
	hurry(now ack.Instant)
	// serves returns why nothing, or no letter, can be posted to a service of the peer, or
	// nil.
	serves(name frame.ServiceName, letter bool) error
	// base returns where that service begins at the peer.
	base(name frame.ServiceName) uint32
	// retell has the peer told again who we are, and reports whether it is.
	retell(now ack.Instant) bool
	// keyed is told that there is a key under which all is sealed from now on.
	keyed(now ack.Instant)
	// next reports whether there is an introduction to be sent now, and if not, when
	// there will be, or when overdue wants to be asked.
	next(now ack.Instant) (send bool, at ack.Instant)
	// introduce adds the introductions that are due to the batch, and reports whether
	// the batch became full before.
	introduce(b *batch, now ack.Instant) (full bool)
	// goodbye adds to the batch that nothing of ours comes any more, if the peer is one
	// that is told so. There is room.
	goodbye(b *batch, now ack.Instant)
	// offering reports whether a life of the peer was told of our next one, and may believe that.
	offering() bool
	// stamp completes a frame without messages under that id, which acknowledges what
	// begins at start.
	stamp(buf []byte, id, start frame.Seq) []byte
	// overdue returns how many frames of the peer are given up at this moment, and why
	// the peer is, if it is.
	overdue(now ack.Instant) (missed int, why error)
	// lives returns what each side is known by.
	lives() (mine, theirs incarnation)
}

// receivingKind is what they differ in where frames are received. It belongs to who has
// the turn to receive.
type receivingKind interface {
	// forget begins anew with the peer.
	forget()
	// judge says what a frame with that first message is. What is settled is done with,
	// for that reason.
	judge(now ack.Instant, f *frame.Frame, first *frame.Message) (kinship, Reason)
	// alone acts on a frame without messages.
	alone(now ack.Instant, f *frame.Frame) Reason
	// acksOf notes what a frame acknowledges.
	acksOf(f *frame.Frame)
	// took is told that a frame was applied that began with that transaction, and notes
	// what it acknowledges.
	took(now ack.Instant, f *frame.Frame, txn uint32)
	// tookRun is took for the n frames with the ids behind the newest one, which acknowledge
	// nothing.
	tookRun(now ack.Instant, n int, txn uint32)
	// copied is told that it came again, and reports whether it is to be acknowledged
	// again.
	copied(now ack.Instant, q frame.Seq, txn uint32) bool
	// dropBatch forgets what the peer acknowledged in this batch, and what is to be acknowledged to it.
	dropBatch()
	// introduced reports whether the peer has said who it is, if it is one that does.
	introduced() bool
}

// ledger says which messages came and which transactions are over, as far as ids and
// indexes tell.
type ledger interface {
	// fits checks a message that follows another one in its frame, or none.
	fits(m *frame.Message, before *placement) Reason
	// marked reports whether a message of an open transaction came, and whether there is
	// room for it without a further gap.
	marked(in *incoming, m *frame.Message) (seen, free bool)
	// begins is told of each message that is placed, before it is counted.
	begins(m *frame.Message, seq frame.Seq)
	// mark notes a message of an open transaction.
	mark(in *incoming, m *frame.Message, seq frame.Seq)
	// ahead returns how many messages may follow one of an open transaction, with the
	// indexes behind its own, of which none came, none needs room and none is the last.
	ahead(in *incoming, m *frame.Message) int
	// markRun notes the n messages that follow m.
	markRun(in *incoming, m *frame.Message, n int)
	// over notes that a transaction is complete.
	over(txn uint32)
	// sweep is called at the end of a batch.
	sweep()
	// release gives back what is kept.
	release()
}

// greeter acts on introductions, which need both halves.
type greeter interface {
	hello(now ack.Instant, f *frame.Frame, h frame.Hello) Reason
}

// kinship is what a frame is.
type kinship uint8

const (
	fresh kinship = iota
	sameAgain
	strange // of another life, or held back by the network
	settled
)
