package endpoint

import (
	"fmt"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
	"github.com/dgrdma/dgrdma/frame"
)

// inquiring is the connection to whoever is at an address, which is the question who that is. It
// introduces itself to the id 0, again and again, until it fails with the answer. It is no peer:
// nothing is posted to it, and nothing taken from it.
type inquiring struct {
	v107Halves
	tx inquiringSending
	rx inquiringReceiving
}

// inquiryMost is the longest time between two questions.
const inquiryMost = 160 * time.Millisecond

func connectInquiring(c *Conn) kind {
	a := &inquiring{v107Halves: c.tx.speakV107(&c.rx, c.ep), tx: inquiringSending{sending: &c.tx}, rx: inquiringReceiving{receiving: &c.rx, mu: &c.mu}}
	a.rx.tx, a.rx.closed.held = &a.tx, &c.rx.held
	c.tx.kind, c.rx.kind, c.rx.ledger = &a.tx, &a.rx, &a.rx.nativeLedger
	return a
}

func (a *inquiring) isPeer() bool { return false }

func (a *inquiring) exchange(ack.Instant) (missed int) { return 0 }

// gone implements kind.
func (a *inquiring) gone() error {
	if a.rx.is == (frame.Identity{}) || a.tx.err != nil {
		return nil
	}
	return &identityError{a.rx.is}
}

// identityError is why an inquiry ends: it is answered.
type identityError struct{ frame.Identity }

func (e *identityError) Error() string { return fmt.Sprintf("it is endpoint %d", e.ID) }

// inquiringSending sends the question. Guarded by the connection's mutex.
type inquiringSending struct {
	*sending
	mine  incarnation // which the answer names
	askAt ack.Instant
	tries int
}

var _ sendingKind = (*inquiringSending)(nil)

func (a *inquiringSending) first(random ack.Wide) ack.Wide              { return random }
func (a *inquiringSending) resume(next ack.Wide, _ frame.Seq) ack.Wide  { return next }
func (a *inquiringSending) renumbered(frame.Seq)                        {}
func (a *inquiringSending) keyed(now ack.Instant)                       { a.askAt = now }
func (a *inquiringSending) hurry(ack.Instant)                           {}
func (a *inquiringSending) serves(frame.ServiceName, bool) error        { return nil }
func (a *inquiringSending) base(frame.ServiceName) uint32               { return 0 }
func (a *inquiringSending) retell(ack.Instant) bool                     { return false }
func (a *inquiringSending) goodbye(*batch, ack.Instant)                 {}
func (a *inquiringSending) offering() bool                              { return false }
func (a *inquiringSending) stamp(buf []byte, _, _ frame.Seq) []byte     { return buf }
func (a *inquiringSending) overdue(ack.Instant) (missed int, why error) { return 0, nil }
func (a *inquiringSending) lives() (mine, theirs incarnation)           { return a.mine, unknown }

func (a *inquiringSending) begin(now ack.Instant) {
	a.mine, a.askAt = a.cfg.incarnation(a.mine), now
	a.measure()
}

// next implements sendingKind.
func (a *inquiringSending) next(now ack.Instant) (send bool, at ack.Instant) {
	if a.err != nil {
		return false, sched.Never
	}
	return a.askAt <= now, a.askAt
}

// introduce implements sendingKind.
func (a *inquiringSending) introduce(b *batch, now ack.Instant) (full bool) {
	switch due, _ := a.next(now); {
	case !due:
		return false
	case b.full():
		return true
	}
	var list *frame.Services
	if a.most >= toldSize {
		list = a.offers.to(a.guest.Load())
	}
	hello := frame.Hello{Life: uint32(a.mine), Checks: a.mayCheck}
	a.putAs(b, a.introduction(b, now, hello, list), nil, false, a.mayCheck)
	a.askAt = now.Add(min(helloFirst<<min(a.tries, 10), inquiryMost))
	a.tries++
	return false
}

// inquiringReceiving takes the answer. It belongs to who has the turn to receive.
type inquiringReceiving struct {
	*receiving
	nativeLedger
	mu *sync.Mutex // the connection's
	tx *inquiringSending
	is frame.Identity // who answered
}

var (
	_ receivingKind = (*inquiringReceiving)(nil)
	_ ledger        = (*nativeLedger)(nil)
)

func (a *inquiringReceiving) introduced() bool                           { return false }
func (a *inquiringReceiving) forget()                                    { a.is = frame.Identity{} }
func (a *inquiringReceiving) acksOf(*frame.Frame)                        {}
func (a *inquiringReceiving) took(ack.Instant, *frame.Frame, uint32)     {}
func (a *inquiringReceiving) tookRun(ack.Instant, int, uint32)           {}
func (a *inquiringReceiving) copied(ack.Instant, frame.Seq, uint32) bool { return false }
func (a *inquiringReceiving) alone(ack.Instant, *frame.Frame) Reason     { return a.drop(RefusedNoSession) }

// judge implements receivingKind. Nobody has the id 0, in whose name the answer comes.
func (a *inquiringReceiving) judge(_ ack.Instant, f *frame.Frame, first *frame.Message) (kinship, Reason) {
	h, ok := first.Hello()
	switch {
	case !ok:
		return settled, a.drop(RefusedNoSession)
	case !h.Refers:
		return settled, a.drop(RefusedSource)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i, ok := f.Identity()
	if !ok || incarnation(h.Peer) != a.tx.mine || a.tx.err != nil {
		return settled, a.drop(RefusedForeign)
	}
	a.is, a.departs = i, true
	return settled, RefusedNone
}
