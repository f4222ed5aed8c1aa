package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/seal"
)

// mostDared is how many challenges are answered within helloFirst. A handshake has one, but who has the peer challenge other addresses
// for our question can send us as many as it likes: this bounds what they cost us and the peer, and leaves room for the true one. Arbitrary.
const mostDared = 64

// dare answers with a challenge who asks for one, or seals under a key that we do not have: it may have shared that with us
// when we were another program. One is enough for a burst.
func (e *Endpoint) dare(now ack.Instant, k peerKey, b []byte, why Reason) {
	v := e.vault
	if why != RefusedNone {
		e.unopened(why, k.addr, b)
	}
	n := len(v.owed)
	if !e.wants(k) || n > 0 && v.owed[n-1].to == k.addr && seal.KindOf(b) == seal.Sealed {
		return
	}
	if v.owe(k.addr, func(buf []byte) []byte {
		return v.challenger.Answer(buf, time.Duration(now), v.ring.Of(uint16(k.theirs)), b, k.addr.Append(nil))
	}) {
		e.strangers.Challenges++
	}
}

// shake acts on a datagram of a handshake.
func (e *Endpoint) shake(now ack.Instant, k peerKey, kind seal.Kind, b []byte) (why Reason) {
	v := e.vault
	switch kind {
	case seal.Question, seal.First:
		switch {
		case v.ring.Of(uint16(k.theirs)) == nil:
			return RefusedSeal
		case !e.wants(k):
			return RefusedSource
		case seal.Reflected(b, v.own):
			return RefusedSeal
		case kind == seal.First:
			return e.respond(now, k, b)
		case !v.challenger.Authentic(v.ring.Of(uint16(k.theirs)), b):
			why = RefusedSeal // the answer tells that somebody is there, who has another key
		}
		e.dare(now, k, b, RefusedNone)
		return why
	case seal.Challenge:
		a := v.find(k)
		if a == nil {
			return RefusedNoSession
		}
		return v.challenged(now, a, b)
	case seal.Second:
		a := v.find(k)
		if a == nil || !v.ends(now, a, b) {
			return RefusedNoSession
		}
		e.keyed(now, a)
	}
	return RefusedNone
}

// challenged answers a challenge with the first message.
func (v *vault) challenged(now ack.Instant, a *association, b []byte) (why Reason) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seal.Unasked(b) {
		switch {
		case a.sealing.Load() == nil:
			return RefusedNoSession
		case !v.challenger.Authentic(a.psk, b):
			return RefusedSeal
		}
		a.hinted = true // it may be an old one: it counts if the peer is silent, too
		return RefusedNone
	}
	if now.Sub(a.daring) >= helloFirst {
		a.daring, a.dared = now, 0
	}
	if a.asking == nil || a.dared == mostDared {
		return RefusedNoSession
	}
	again := a.asking.Challenged()
	ok, refused := a.asking.Take(b)
	if !ok && refused == seal.Stale {
		return RefusedNoSession
	}
	a.daredAt, a.answered = now, true
	if !ok {
		return RefusedSeal
	}
	if !again {
		a.begun = now
	}
	a.askedAt = now
	a.dared++
	v.owe(a.key.addr, func(buf []byte) []byte { return a.asking.Again(buf, [4]byte{}) })
	return RefusedNone
}

// ends takes the second message.
func (v *vault) ends(now ack.Instant, a *association, b []byte) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if a.asking == nil || now.Sub(a.begun) > keyFades {
		return false // or somebody held it back, until the peer has that key no more
	}
	k, ok := a.asking.Second(b)
	if !ok {
		return false
	}
	a.promise(now, k)
	a.confirm(now, k.Index, k.Sealing)
	a.heard.Store(int64(now))
	a.asking, a.hinted = nil, false
	return true
}

// respond answers a first message.
func (e *Endpoint) respond(now ack.Instant, k peerKey, b []byte) (why Reason) {
	v := e.vault
	a := v.find(k)
	if a != nil && a.repeats(b) {
		v.owe(k.addr, func(buf []byte) []byte { return append(buf, a.reply...) })
		return RefusedNone
	}
	fresh, refused := v.challenger.Check(time.Duration(now), v.ring.Of(uint16(k.theirs)), b, k.addr.Append(nil))
	switch {
	case fresh == nil && refused == seal.Stale:
		e.dare(now, k, b, RefusedNone) // we may have begun anew since it was challenged
		return RefusedNoSession
	case fresh == nil:
		return RefusedSeal
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	a = v.associate(now, k)
	second, keys, ok := fresh.Second(nil, v.own, a.draw())
	if !ok {
		return RefusedSeal
	}
	a.promise(now, keys)
	a.first, a.reply = append(a.first[:0], b...), second
	v.owe(k.addr, func(buf []byte) []byte { return append(buf, second...) })
	return RefusedNone
}

// keyed has a peer introduced to at once, with which we share a key now.
func (e *Endpoint) keyed(now ack.Instant, a *association) {
	c := e.peers.find(a.key)
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
