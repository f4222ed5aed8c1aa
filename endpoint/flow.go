package endpoint

import "github.com/dgrdma/dgrdma/frame"

// Flow is a queue of transactions to one service of a peer.
type Flow struct {
	conn *Conn
	name frame.ServiceName
}

// Conn returns the connection.
func (f *Flow) Conn() *Conn {
	if f == nil {
		return nil
	}
	return f.conn
}

// Post queues a transaction, as [Conn.Post] does for the peer's memory. Addresses are
// the peer's; that they lie within the service is for the peer to see.
func (f *Flow) Post(t *Transaction) error { return f.post(t, posting{to: whoever}) }

// PostTo is Post to that life of the connection and no other: see [Conn.PostTo].
func (f *Flow) PostTo(life uint32, t *Transaction) error { return f.post(t, posting{to: in(life)}) }

func (f *Flow) post(t *Transaction, how posting) error {
	how.flow = f
	return f.Conn().post(t, t.done(), nil, how)
}
