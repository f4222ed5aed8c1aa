package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/frame"
)

// sendServices tells the peer which services there are, in a frame that is acknowledged.
func (n *sessionSending) sendServices(b *outgoing.Batch, now ack.Instant) {
	list := n.terms.offers.to(n.terms.guest.Load())
	buf := n.inFlight.Little(b.Headroom() + n.terms.header + frame.MessageHeaderSize + frame.ServicesLen(list))
	var w frame.Writer
	w.InitAfter(buf[b.Headroom():], n.terms.header)
	m := frame.Message{
		Txn: n.nextTxn, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Type: frame.TypeServices,
	}
	if size := frame.ServicesLen(list); n.terms.partHead()+size <= n.path.Size() { // else the peer is told that there is no room for a list
		m.Len = uint16(size)
	}
	if data := w.Add(&m); len(data) > 0 {
		list.Put(data)
	}
	n.sendKept(b, n.sent.Track(now, w.Len()), buf[:b.Headroom()+w.Len()], frame.NoControl)
}

// tellAgain implements sendingKind.
func (n *sessionSending) tellAgain(ack.Instant) bool {
	n.untold = n.open()
	return n.untold
}
