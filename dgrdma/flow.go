package dgrdma

import (
	"github.com/dgrdma/dgrdma/endpoint/queue"
	"github.com/dgrdma/dgrdma/frame"
)

// Flow is a queue of transactions to one service of a peer. Those of a flow begin in the
// order in which they were posted. The flows of a connection take turns, a few frames
// each, so that little waits for one turn of each of the others and not for all that they
// have posted. What is [Transaction.Urgent] waits for one frame of them at most. While 32 flows have sent a part
// of a transaction of several frames, others begin none of those until one of the 32 has sent
// all of its own.
type Flow struct {
	conn   *Conn
	name   frame.ServiceName
	queued queue.Flow[Transaction] // guarded by the connection's mutex

	letters *outbox // whose letters are posted to it, and nothing else; nil: none
}

// mostOfService bounds the transactions of a flow to a service: the service that posts has bounds of its
// own, such as the buffers that the peer has, and this is above them. Arbitrary.
const mostOfService = 1 << 16

// most is how many transactions the flow holds that are not done.
func (f *Flow) most() int {
	if f == &f.conn.plain {
		return f.conn.cfg.Queue
	}
	return mostOfService
}

// Conn returns the connection.
func (f *Flow) Conn() *Conn {
	return f.conn
}

// Post queues a transaction, as [Conn.Post] does for the peer's memory. Addresses are
// the peer's, and not checked against the service's window: what lies in that of another
// service there is written, if that one admits it. A flow holds 65536 transactions that are not done;
// then Post fails with ErrQueueFull.
func (f *Flow) Post(t *Transaction) error { return f.post(t, posting{to: anyEpoch}) }

// PostTo is Post to that life of the connection and no other: see [Conn.PostTo].
func (f *Flow) PostTo(life uint32, t *Transaction) error { return f.post(t, posting{to: in(life)}) }

func (f *Flow) post(t *Transaction, how posting) error {
	how.flow = f
	return f.Conn().post(t, t.Done, nil, how)
}
