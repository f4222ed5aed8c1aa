package dgrdma

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/sealed"
)

// sealOwner is the endpoint as the layer that seals its frames sees it.
type sealOwner struct{ *Endpoint }

var _ sealed.Owner = sealOwner{}

func (k peerKey) pair() sealed.Pair {
	return sealed.Pair{Local: k.local, Remote: k.remote, Addr: k.addr}
}

func keyOfPair(p sealed.Pair) peerKey { return peerKey{ids{p.Local, p.Remote}, p.Addr} }

// HasPeer implements sealed.Owner.
func (e sealOwner) HasPeer(p sealed.Pair) bool { return e.peers.find(keyOfPair(p)) != nil }

// Accepts implements sealed.Owner. A peer that asks which id this endpoint has may be connected, too.
func (e sealOwner) Accepts(p sealed.Pair) bool {
	return e.gate.Accepts() || e.HasPeer(p) || e.peers.find(peerKey{ids{e.cfg.ID, p.Remote}, p.Addr}) != nil
}

// sealRefusals are the reasons of the layer as an endpoint counts them.
var sealRefusals = [...]Reason{
	sealed.BadSeal: RefusedSeal, sealed.NotSealed: RefusedUnsealed, sealed.UnknownSource: RefusedSource, sealed.NotAsked: RefusedNoSession,
}

// Refused implements sealed.Owner.
func (e sealOwner) Refused(why sealed.Refusal, from transport.Addr, b []byte) {
	e.countUnknown(&transport.Datagram{Data: b})
	source := PeerName{Addr: from}
	if len(b) >= frame.HeaderSize {
		_, source.ID = frame.IDsOf(b)
	}
	e.refuseUnknown(sealRefusals[why], source)
}

// Keyed implements sealed.Owner: a session is asked for at once.
func (e sealOwner) Keyed(now ack.Instant, p sealed.Pair) {
	c := e.peers.find(keyOfPair(p))
	if c == nil {
		return
	}
	c.mu.Lock()
	if c.tx.err == nil {
		c.tx.kind.keyed(now)
		c.tx.wake(now)
	}
	c.mu.Unlock()
	e.sched.Work(false)
}

// settleKeys is called after a connection came into the table of peers, or left it.
func (e *Endpoint) settleKeys(c *Conn) {
	if e.sealed != nil {
		e.sealed.Settle(c.key().pair())
	}
}

// countKeys adds what the layer that seals counted in a batch.
func (e *Endpoint) countKeys(to *Counters) {
	c := e.sealed.TakeCounts()
	to.Challenges += c.Challenges
	to.Unanswered += c.Unanswered
	to.ChallengesFull += c.ChallengesFull
	to.KeysEvicted += c.KeysEvicted
}

// NoKey says what is known of why there is no key yet under which all is sealed that is said to the peer, see
// [Config.Keys]: the error is [ErrNoKey]. nil: there is one, or nothing is sealed.
func (c *Conn) NoKey() error {
	return c.ep.keyless(c.key(), nil)
}

// lacks are the errors of peers for which there is no key.
var lacks = [...]error{sealed.NoKeyHere: errNoKeyHere, sealed.NoAnswer: errUnkeyed, sealed.OtherKey: errOtherKey}

// keyless returns why a peer is given up, which is that there never was a key for it, or that it was there lately and has another one, if that is so.
func (e *Endpoint) keyless(k peerKey, why error) error {
	if e.sealed == nil {
		return why
	}
	lack := e.sealed.Lacks(k.pair(), why != nil)
	if lack == sealed.NoLack {
		return why
	}
	return &PeerError{ID: k.remote, Addr: k.addr, Op: "agreeing on a key", Err: lacks[lack]}
}
