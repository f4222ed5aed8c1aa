package sealed

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/seal"
)

// mostDared is how many challenges are answered within askFirst. A handshake has one, but an attacker that has the peer challenge other addresses
// for our question can send us as many as it likes: this bounds what they cost us and the peer, and leaves room for the true one. Arbitrary.
const mostDared = 64

// wants reports whether anything would be taken from a peer.
func (l *Layer) wants(p Pair) bool {
	return p.Remote != 0 && l.ring.Of(uint16(p.Remote)) != nil && l.owner.Accepts(p)
}

// challenge answers a datagram that asks for a challenge, or is sealed under a key that is not there: this side may have had that key
// in an earlier process. One is enough for a burst.
func (l *Layer) challenge(now ack.Instant, p Pair, b []byte) {
	n := len(l.owed)
	if !l.wants(p) || n > 0 && l.owed[n-1].to == p.Addr && seal.KindOf(b) == seal.Sealed {
		return
	}
	if l.owe(p.Addr, func(buf []byte) []byte {
		return l.challenger.Answer(buf, time.Duration(now), l.ring.Of(uint16(p.Remote)), b, p.Addr.Append(nil))
	}) {
		l.counts.Challenges++
	}
}

// shake acts on a datagram of a handshake.
func (l *Layer) shake(now ack.Instant, p Pair, kind seal.Kind, b []byte) (why Refusal) {
	switch kind {
	case seal.Question, seal.First:
		switch {
		case l.ring.Of(uint16(p.Remote)) == nil:
			return BadSeal
		case !l.wants(p):
			return UnknownSource
		case seal.Reflected(b, l.own):
			return BadSeal
		case kind == seal.First:
			return l.respond(now, p, b)
		case !l.challenger.Authentic(l.ring.Of(uint16(p.Remote)), b):
			why = BadSeal // the answer tells that an endpoint is there, with another key
		}
		l.challenge(now, p, b)
		return why
	case seal.Challenge:
		a := l.find(p)
		if a == nil {
			return NotAsked
		}
		return l.challenged(now, a, b)
	case seal.Second:
		a := l.find(p)
		if a == nil || !l.ends(now, a, b) {
			return NotAsked
		}
		l.owner.Keyed(now, p)
	}
	return NotRefused
}

// challenged answers a challenge with the first message.
func (l *Layer) challenged(now ack.Instant, a *association, b []byte) (why Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seal.Unasked(b) {
		switch {
		case a.sealing.Load() == nil:
			return NotAsked
		case !l.challenger.Authentic(a.psk, b):
			return BadSeal
		}
		a.hinted = true // it may be an old one: it counts if the peer is silent, too
		return NotRefused
	}
	if now.Sub(a.daring) >= askFirst {
		a.daring, a.dared = now, 0
	}
	if a.asking == nil || a.dared == mostDared {
		return NotAsked
	}
	again := a.asking.Challenged()
	ok, refused := a.asking.Take(b)
	if !ok && refused == seal.Stale {
		return NotAsked
	}
	a.daredAt, a.answered = now, true
	if !ok {
		return BadSeal
	}
	if !again {
		a.begun = now
	}
	a.askedAt = now
	a.dared++
	l.owe(a.pair.Addr, func(buf []byte) []byte { return a.asking.Again(buf, [4]byte{}) })
	return NotRefused
}

// ends takes the second message.
func (l *Layer) ends(now ack.Instant, a *association, b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.asking == nil || now.Sub(a.begun) > keyFades {
		return false // or the network held it back, until the peer has that key no more
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
func (l *Layer) respond(now ack.Instant, p Pair, b []byte) (why Refusal) {
	a := l.find(p)
	if a != nil && a.repeats(b) {
		l.owe(p.Addr, func(buf []byte) []byte { return append(buf, a.reply...) })
		return NotRefused
	}
	fresh, refused := l.challenger.Check(time.Duration(now), l.ring.Of(uint16(p.Remote)), b, p.Addr.Append(nil))
	switch {
	case fresh == nil && refused == seal.Stale:
		l.challenge(now, p, b) // this process may have begun since it was challenged
		return NotAsked
	case fresh == nil:
		return BadSeal
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a = l.associate(now, p)
	second, keys, ok := fresh.Second(nil, l.own, a.draw())
	if !ok {
		return BadSeal
	}
	a.promise(now, keys)
	a.first, a.reply = append(a.first[:0], b...), second
	l.owe(p.Addr, func(buf []byte) []byte { return append(buf, second...) })
	return NotRefused
}
