package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// stray answers a frame of a session that there is not.
func (n *sessionReceiving) stray(f *frame.SessionFrame) Reason {
	if f.Control == frame.NoControl || f.Control == frame.ControlBell {
		n.peer.conn.ep.answerReset(n.key(), f)
	}
	return n.drop(RefusedForeign)
}

// reset acts on the answer to a frame of ours, which says that the peer does not have the session. It quotes that frame.
func (n *sessionReceiving) reset(now ack.Instant, f *frame.SessionFrame) Reason {
	if !n.frames.MayHaveSaid(f.Ack) {
		return n.drop(RefusedForeign)
	}
	return n.peer.acts(now, &session.Frame{Kind: session.Reset, QuotedTag: f.Tag, ID: f.ID, Copy: f.Copy}, spoken{})
}
