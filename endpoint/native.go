package endpoint

import (
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// A restart must never be mistaken for more of the same: ids would look like
// duplicates and be acknowledged without being applied, and a new life that
// hears the second half of an old transaction would acknowledge what it cannot
// complete. So peers of our kind introduce each of their lives before they
// send or take data.
//
// A life is named by the id of its first transaction, a random number. The
// introduction, the hello, is an ordinary message that does nothing: frame.Hello
// has its form.
//
// The network may hold hellos back for long, like everything else. So a life is
// believed only if it names a life of ours that the ones before it cannot have
// heard of: the present one if we know no life of the peer, else one drawn for
// the occasion, which becomes ours when the peer's is believed. Thus both sides
// change lives together, and no late frame can bring a past one back. What
// acknowledges without messages names the receiver's life (see frame.Stamp).
//
// To a stranger that life is computed and not drawn, so that nothing need be kept of
// it: see cookies.
//
// Only who answers believes the life that it names; who asks may yet believe
// another one that heard the same name. Until an answer came, acknowledgements
// that ride on data may be meant for that one, and do not count.
//
// Hellos are neither acknowledged nor tracked; who has not seen its own life
// come back asks again. Data flows only to a life that was believed, and is
// taken only from one.
const (
	helloFirst     = 20 * time.Millisecond
	helloMost      = time.Second
	helloIdle      = 8 * time.Second // when there is nothing to send
	helloSize      = frame.HeaderSize + frame.MessageHeaderSize
	toldSize       = helloSize + frame.ServicesSize
	identifiedSize = helloSize + frame.IdentitySize
	sizedSize      = toldSize + frame.SizeProbeSize
	toldMTU        = (toldSize-frame.HeaderSize+7)&^7 + frame.HeaderSize // see newConn
	// helloTries is how often a life that we did not believe yet is asked: it
	// may be long over. Arbitrary.
	helloTries = 8
	// leastInsisted is how often at least we name a life that never believed ours, before
	// we take it for over; and for half of GiveUp at least: a network that fails for less
	// ends nothing. Arbitrary: with 40 % loss all are lost once in a thousand times.
	leastInsisted = 8
)

// native is a connection to a peer of our own kind.
type native struct {
	v107Halves
	tx      nativeSending
	rx      nativeReceiving
	mu      *sync.Mutex // the connection's
	cookies *cookies
	peers   *peerTable
	answers answerer
}

func newNative(tx *sending, rx *receiving, mu *sync.Mutex, e *Endpoint, told *cookie) *native {
	n := &native{v107Halves: tx.speakV107(rx, e), mu: mu, cookies: &e.cookies, peers: &e.peers, answers: e}
	n.tx = nativeSending{sending: tx, told: told}
	n.rx.receiving, n.rx.both = rx, n
	n.rx.closed.held = &rx.held
	tx.kind, rx.kind, rx.ledger = &n.tx, &n.rx, &n.rx.nativeLedger
	tx.emptyIndex = frame.NotHello
	return n
}

func (n *native) isPeer() bool { return true }

// exchange implements kind.
func (n *native) exchange(now ack.Instant) (missed int) {
	if n.rx.reminds {
		n.rx.reminds = false
		n.tx.remind(now)
	}
	n.tx.reached = n.rx.recv.Newest()
	n.tx.paired = n.rx.paired // stale behind a Reset: then whoever is there is asked anyway
	return 0
}

// gone implements kind. Reset may have begun another life since, also by who was told what is done.
func (n *native) gone() error {
	asked, other := n.rx.asked, n.rx.other
	n.rx.asked, n.rx.other = unknown, frame.Identity{}
	switch tx := &n.tx; {
	case tx.err != nil:
		return nil
	case tx.renounced && (n.rx.paired || n.rx.taken):
		tx.recall = tx.asked != unknown // who left is back: its next life came behind
		return tx.peerError("", ErrPeerClosed)
	case tx.renounced:
		n.rx.departs = true // until something shows that it was
		return nil
	case asked == unknown || asked != tx.mine:
		return nil
	case tx.theirs != unknown:
		return nil // who was meant was faster
	default:
		return tx.mistaken(other)
	}
}

// refers acts on the answer of whoever is at the peer's address and has another id. It is believed
// as long as no life of the peer is, and if it names the life that asked, which who forges it does
// not know. Where the two of us may go by several ids it counts only when the peer is given up.
func (n *native) refers(f *frame.Frame, h frame.Hello) Reason {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, ok := f.Identity()
	if !ok || incarnation(h.Peer) != n.tx.mine || n.tx.theirs != unknown || n.tx.err != nil {
		return n.rx.drop(RefusedForeign)
	}
	if n.tx.other = i.ID; !n.besides(i.ID) {
		n.rx.other, n.rx.asked, n.rx.departs = i, n.tx.mine, true
	}
	return RefusedNone
}

// leaves acts on a goodbye. It is true if it names both lives: who forges it knows as little of
// them as of what is written. Of a life that has not shown that it believes ours it may be said because it never began,
// and the one that did comes behind: then that is listened to. Or it was faster than what shows that.
func (n *native) leaves(h frame.Hello) Reason {
	n.mu.Lock()
	defer n.mu.Unlock()
	if incarnation(h.Life) != n.tx.theirs || incarnation(h.Peer) != n.tx.mine {
		return n.rx.drop(RefusedForeign)
	}
	n.tx.renounced, n.rx.departs = true, true
	return RefusedNone
}

// hello acts on an introduction, with the turn to receive. It needs both halves in the
// midst of a batch: what follows it is of the life that it introduces.
func (n *native) hello(now ack.Instant, f *frame.Frame, h frame.Hello) Reason {
	switch {
	case h.Refers:
		return n.refers(f, h)
	case h.Leaves:
		return n.leaves(h)
	}
	var fin finished
	defer n.answers.finish(&fin) // what is left, if a callback does not return
	why, event := n.introduced(now, f, h, &fin)
	n.answers.tell(&fin)
	if event != 0 {
		n.rx.events.event(Event{Kind: event})
	}
	return why
}

func (n *native) introduced(now ack.Instant, f *frame.Frame, h frame.Hello, fin *finished) (why Reason, event EventKind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	tx, rx := &n.tx, &n.rx
	life, named, said := incarnation(h.Life), incarnation(h.Peer), said(f)
	if life != tx.theirs {
		// Who names a life of ours hears what is sent to the peer.
		tx.brief = f.Size() < toldSize && (named == unknown || named != tx.mine && named != tx.later)
	}
	whole := said.listed || h.Tells || !tx.needsList()
	switch {
	case tx.closed:
		why = RefusedForeign
	case tx.cfg.KeepOldLife && tx.theirs != unknown && life != tx.theirs:
		why = RefusedForeign
	case tx.reporting, tx.err != nil && life == tx.theirs:
		rx.reminds = rx.reminds || life == tx.theirs && named == tx.mine
		why = RefusedDown
	case tx.err != nil && tx.later != unknown && named == tx.later && whole:
		// Nothing is pending, and the peer began anew: so do we.
		later, before := tx.later, tx.theirs != unknown
		tx.revive(now)
		tx.beginAs(now, later)
		tx.before = before
		event = n.believe(now, f, life, fin)
	case tx.err != nil:
		// Or somebody says so in its name, who does not hear the answer.
		tx.draw()
		tx.asked, tx.recall = life, true
	case tx.theirs == unknown && whole && (named == tx.mine || n.becomes(now, life, named)):
		event = n.believe(now, f, life, fin)
	case tx.theirs == unknown:
		tx.ask(now, life)
	case life == tx.theirs:
		tx.answer = tx.answer || named != tx.mine
		if tx.learn(said) {
			tx.refuse(fin)
		}
		rx.recv.AckOnly(ack.Wide(f.HelloID()))
	case tx.later != unknown && named == tx.later && !whole:
		tx.ask(now, life)
	case tx.later != unknown && named == tx.later:
		tx.abandon(now, fin, tx.peerError("transactions in flight", ErrPeerRestarted))
		tx.beginAs(now, tx.later)
		tx.before = true
		event = n.believe(now, f, life, fin)
	case named == tx.mine && h.Tells && tx.later == unknown && !rx.paired && !rx.taken:
		// This one believes ours, and the one that we believe never did: it is what was
		// said when nothing was kept of us, and came late.
		if tx.elsewhere(said) || tx.checks != (tx.mayCheck && rx.checked()) {
			// Sent again it would go where the services of that other one were, or have a checksum, or none, as that took it.
			tx.abandon(now, fin, tx.peerError("transactions in flight", ErrPeerRestarted))
		}
		n.believe(now, f, life, fin)
	case (named == unknown || named == tx.mine) && tx.later == unknown && !rx.paired && tx.insists(now, rx.taken):
		// The life that we believe did not show yet that it believes ours: perhaps nothing
		// is kept of us there, because our hello was lost. Named again, it may be recalled.
		tx.askSoon(now)
	case named == unknown || named == tx.mine || n.heardBefore(now, life, named):
		tx.draw()
		tx.ask(now, life)
	default:
		why = RefusedForeign // an answer to a life that is over
	}
	if life == tx.theirs && named == tx.mine {
		tx.knows(said, h.Tells)
		tx.saysSize(now, f, h.Tells)
		if tx.checks = tx.checks || tx.mayCheck && rx.checked(); tx.checks {
			rx.checks = true
		}
		rx.paired = rx.paired || h.Tells
		rx.livedAt = now
	}
	if why == RefusedNone {
		tx.answer = tx.answer || !h.Tells && life == tx.theirs
	} else {
		rx.counters.Refused[why]++
	}
	return why, event
}

// becomes makes the life ours that the sender of a hello was told when we kept
// nothing of it, and believes since: we have connected to it meanwhile. Guarded by
// the connection's mutex.
func (n *native) becomes(now ack.Instant, life, named incarnation) bool {
	told, _, fresh := n.cookies.find(now, n.tx.key(), life, named)
	if fresh {
		n.tx.beginTold(now, told)
	}
	return fresh
}

// heardBefore reports whether a hello names what its sender was told when we kept
// nothing of it yet: then another life of the peer came first, but this one may be
// the present one.
func (n *native) heardBefore(now ack.Instant, life, named incarnation) bool {
	_, ok, _ := n.cookies.find(now, n.tx.key(), life, named)
	return ok
}

// believe takes a life of the peer for its present one. Guarded by the connection's
// mutex, with the turn to receive.
func (n *native) believe(now ack.Instant, f *frame.Frame, life incarnation, fin *finished) EventKind {
	tx := &n.tx
	if tx.asks == 1 { // else it may answer one before the last
		tx.sender.RTT().Sample(now, now.Sub(tx.askedAt))
	}
	tx.theirs, tx.asked, tx.ready, tx.renounced = life, unknown, true, false
	tx.serving = said(f)
	tx.refuse(fin)
	if n.cookies.spend(introduction{tx.key(), tx.mine, life}) {
		tx.counters.CookiesFull++
	}
	tx.answer = true // it waits to see its own life
	tx.tries, tx.asks, tx.askAt, tx.since = 0, 0, now.Add(helloFirst), now
	tx.tellAgain(tx.askAt)
	// What this batch acknowledged so far was said by an old life, and what is
	// to be acknowledged too. Reset may have come since this frame did.
	tx.due.Init(tx.profile.AckEvery, tx.profile.AckDelay)
	n.rx.followed = n.rx.resets.Load()
	n.rx.begin(life, tx.mine, ack.Wide(f.HelloID()))
	n.agree()
	if tx.before {
		tx.counters.Restarts++
		return PeerRestarted
	}
	return PeerUp
}
