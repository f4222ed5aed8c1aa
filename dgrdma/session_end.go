package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/session"
)

// buildDisconnect implements sendingKind.
func (n *sessionSending) buildDisconnect(b *outgoing.Batch, now ack.Instant) {
	if n.open() {
		o := n.machine(now, func(_ session.At, e session.Epochs) session.Output { return n.m.Close(e) })
		n.bye = o.Reply
	}
	if n.bye.Kind != session.Bye {
		return
	}
	buf := b.Small()
	size := n.frames.PutBye(buf[b.Headroom():], n.bye)
	n.put(b, buf[:b.Headroom()+size], nil, false)
	n.bye = session.Frame{}
}
