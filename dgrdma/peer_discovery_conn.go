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

// mostQuestion is the longest time between two questions where no router is on the way. It is shorter than between two HELLOs of a connection, as a question
// is over soon.
const mostQuestion = 320 * time.Millisecond

// pause returns the time after the question that has just left, as after a HELLO of a connection.
func (a *discoverySending) pause() time.Duration {
	if a.terms.routed {
		return session.RoutedRetry
	}
	wait := session.NearRetry
	for range a.tries {
		wait = min(session.Slower*wait, mostQuestion)
	}
	return wait
}

func connectDiscovery(c *Conn) kind {
	c.tx.speakV107(false)
	a := &discoveryConn{tx: discoverySending{sending: &c.tx, tells: &c.ep.epochs}, rx: discoveryReceiving{receiving: &c.rx, mu: &c.mu}}
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
	return &identityError{a.rx.is, a.rx.by}
}

// identityError is why a discovery ends: it is answered.
type identityError struct {
	frame.Refusal
	by *introduction // nil: by a REFUSED
}

func (e *identityError) Error() string { return fmt.Sprintf("it is endpoint %d", e.ID) }

// discoverySending sends the question. Guarded by the connection's mutex.
type discoverySending struct {
	*sending
	tells *epochs
	mine  session.Epoch // which the answer names
	askAt ack.Instant
	tries int
	first ack.Instant // when the first question left
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

// begin implements sendingKind. The question is a HELLO under the epoch under which a connection to the endpoint that is there would ask.
func (a *discoverySending) begin(now ack.Instant) {
	a.tells.with(a.terms.key(), now, func(e session.Epochs) { a.mine = e.Told() })
	a.askAt = now
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
	list := a.terms.offered()
	buf := a.terms.handshake(b, h, list)
	if list != nil && list.HasRoom() {
		frame.PutIdentity(buf[b.Headroom()+frame.HandshakeSize:], frame.Refusal{})
	}
	a.putAs(b, buf, nil, false, a.terms.mayCheck)
	if a.tries == 0 {
		a.first = now
	}
	a.askAt = now.Add(a.pause())
	a.tries++
	return false
}

// discoveryReceiving takes the answer. It belongs to the holder of the receive lock.
type discoveryReceiving struct {
	*receiving
	mu *sync.Mutex // the connection's
	tx *discoverySending
	is frame.Refusal // of the endpoint that answered
	by *introduction // the answer, if it was a WELCOME
}

var _ receivingKind = (*discoveryReceiving)(nil)

func (a *discoveryReceiving) introduced() bool { return false }
func (a *discoveryReceiving) forget()          { a.is, a.by = frame.Refusal{}, nil }

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
	case h.Kind != frame.HandshakeRefused && h.Kind != frame.HandshakeWelcome:
		return a.drop(RefusedSource), false
	case lostChecksum(f, &h, a.checked(), a.terms.mayCheck):
		return a.refused(RefusedChecksum, h.Sender, nil), false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var r frame.Refusal
	var by *introduction
	if h.Kind == frame.HandshakeRefused {
		r, ok = frame.RefusalOf(f)
	} else {
		r, ok = f.Identity()
		of := a.key()
		of.remote = r.ID
		by = &introduction{of: of, at: now, took: now.Sub(a.tx.first), asked: a.tx.tries, welcome: handshakeOf(h), spoken: spoken{peerServices: said(f), checks: h.Checks}}
	}
	if !ok || session.Epoch(h.Receiver) != a.tx.mine || a.tx.err != nil {
		return a.drop(RefusedForeign), false
	}
	a.is, a.by, a.departs = r, by, true
	return RefusedNone, false
}
