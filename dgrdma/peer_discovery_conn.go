package dgrdma

import (
	"fmt"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// discoveryConn is the connection to an address whose endpoint is not known: the question which one is there. It
// sends HELLO to the id 0, again and again, until it fails with the answer. It is no peer:
// nothing is posted to it, and nothing taken from it.
type discoveryConn struct {
	tx discoverySending
	rx discoveryReceiving
}

// discoveryMost is the longest time between two questions.
const discoveryMost = 160 * time.Millisecond

func connectDiscovery(c *Conn) kind {
	c.tx.speakV107(false)
	a := &discoveryConn{tx: discoverySending{sending: &c.tx}, rx: discoveryReceiving{receiving: &c.rx, mu: &c.mu}}
	a.rx.tx = &a.tx
	c.tx.kind, c.rx.kind = &a.tx, &a.rx
	return a
}

func (a *discoveryConn) isPeer() bool { return false }

func (a *discoveryConn) exchange(ack.Instant) (missed int)  { return 0 }
func (a *discoveryConn) acknowledge(ack.Instant, *finished) {}
func (a *discoveryConn) scheduleAck(ack.Instant)            {}

// gone implements kind.
func (a *discoveryConn) gone() error {
	if a.rx.is == (frame.Refusal{}) || a.tx.err != nil {
		return nil
	}
	return &identityError{a.rx.is}
}

// identityError is why a discovery ends: it is answered.
type identityError struct{ frame.Refusal }

func (e *identityError) Error() string { return fmt.Sprintf("it is endpoint %d", e.ID) }

// discoverySending sends the question. Guarded by the connection's mutex.
type discoverySending struct {
	*sending
	mine  session.Epoch // which the answer names
	askAt ack.Instant
	tries int
}

var _ sendingKind = (*discoverySending)(nil)

func (a *discoverySending) keyed(now ack.Instant)                            { a.askAt = now }
func (a *discoverySending) hurry(ack.Instant)                                {}
func (a *discoverySending) serves(frame.ServiceName, bool) error             { return nil }
func (a *discoverySending) base(frame.ServiceName) uint32                    { return 0 }
func (a *discoverySending) tellAgain(ack.Instant) bool                       { return false }
func (a *discoverySending) refusal() error                                   { return nil }
func (a *discoverySending) buildDisconnect(*outgoing.Batch, ack.Instant)     {}
func (a *discoverySending) overdue(_, _ ack.Instant) (missed int, why error) { return 0, nil }
func (a *discoverySending) epochs() (mine, theirs session.Epoch)             { return a.mine, 0 }
func (a *discoverySending) failed(ack.Instant)                               {}
func (a *discoverySending) connected(ack.Instant)                            {}

func (a *discoverySending) begin(now ack.Instant) {
	a.mine, a.askAt = session.Epoch(max(a.terms.cfg.Entropy(), 1)), now
	a.measure()
}

// next implements sendingKind.
func (a *discoverySending) next(now ack.Instant) (send bool, at ack.Instant) {
	if a.err != nil {
		return false, run.Never
	}
	return a.askAt <= now, a.askAt
}

// introduce implements sendingKind.
func (a *discoverySending) introduce(b *outgoing.Batch, now ack.Instant) (full bool) {
	switch due, _ := a.next(now); {
	case !due:
		return false
	case b.IsFull():
		return true
	}
	h := frame.Handshake{Kind: frame.HandshakeHello, Sender: uint32(a.mine), Checks: a.terms.mayCheck}
	a.putAs(b, a.terms.handshake(b, h, a.terms.offered()), nil, false, a.terms.mayCheck)
	a.askAt = now.Add(min(helloFirst<<min(a.tries, 10), discoveryMost))
	a.tries++
	return false
}

// discoveryReceiving takes the answer. It belongs to the holder of the receive lock.
type discoveryReceiving struct {
	*receiving
	mu *sync.Mutex // the connection's
	tx *discoverySending
	is frame.Refusal // of the endpoint that answered
}

var _ receivingKind = (*discoveryReceiving)(nil)

func (a *discoveryReceiving) introduced() bool { return false }
func (a *discoveryReceiving) forget()          { a.is = frame.Refusal{} }

func (a *discoveryReceiving) dropBatch() {}

func (a *discoveryReceiving) follow(ack.Instant, *frame.Frame, []transport.Datagram, *transport.Addr) (n int) {
	return 0
}

// receive implements receivingKind. No endpoint has the id 0, in whose name the answer comes.
func (a *discoveryReceiving) receive(now ack.Instant, f *frame.Frame) (why Reason, applied bool) {
	a.begin(now)
	h, ok := a.handshakeOf(f)
	switch {
	case !ok:
		return a.drop(RefusedNoSession), false
	case h.Kind != frame.HandshakeRefused:
		return a.drop(RefusedSource), false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := frame.RefusalOf(f)
	if !ok || session.Epoch(h.Receiver) != a.tx.mine || a.tx.err != nil {
		return a.drop(RefusedForeign), false
	}
	a.is, a.departs = r, true
	return RefusedNone, false
}
