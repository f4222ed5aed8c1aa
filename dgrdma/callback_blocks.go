package dgrdma

import (
	"errors"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// addReceiverBlocked adds to why a peer is given up that the receive goroutine was blocked.
func (e *Endpoint) addReceiverBlocked(now ack.Instant, why error) error {
	var p *PeerError
	if held := e.receiverBlocked(now, e.cfg.GiveUp/2); held != "" && errors.As(why, &p) {
		p.Op += ", " + held
		p.Err = ErrPeerDown // an endpoint that did not receive cannot say that the peer never answered
	}
	return why
}

// receiverBlocked says that a callback has blocked the receiver for that long, as one does that waits for
// an answer, or is empty.
func (e *Endpoint) receiverBlocked(now ack.Instant, least time.Duration) string {
	since := ack.Instant(e.applying.Load())
	if since == 0 || now.Sub(since) < least {
		return ""
	}
	return fmt.Sprintf("while a callback has not returned for %v and nothing was received"+
		" (Write, and what else waits, does not end in a callback: Post does)", now.Sub(since).Round(time.Millisecond))
}
