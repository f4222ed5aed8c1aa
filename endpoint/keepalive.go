package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
)

// keepAlive asks a peer of which nothing is heard whether its life still goes on: by our
// introduction, which it answers, whatever its memory admits. One that never came, or not since a
// Reset, is asked likewise. Once something is heard, all questions are answered. What is refused
// is nothing that was heard: anybody can send that in the peer's name, and who has its address
// since says so (attack A26, SECURITY.md).
type keepAlive struct {
	asks        int // since something was heard
	first, last ack.Instant
}

// leastAsked is how many questions remain without an answer at least before a peer is given up:
// when this process stood still, the answers to those before may still be read. Arbitrary.
const leastAsked = 4

// standsStill is how long after a question the next one is so late that this process stood still:
// what it did not hear meanwhile counts no more. Arbitrary: several times the longest pause.
const standsStill = 4 * helloMost

// open returns how many questions have no answer, if the peer was heard last at that time.
func (k *keepAlive) open(heard ack.Instant) int {
	if heard >= k.last {
		return 0
	}
	return k.asks
}

// asked notes that a question leaves.
func (k *keepAlive) asked(now, heard ack.Instant) {
	if k.open(heard) == 0 || now.Sub(k.last) > standsStill {
		k.asks, k.first = 0, now
	}
	k.asks++
	k.last = now
}

// over reports whether no question was answered for that long.
func (k *keepAlive) over(now, heard ack.Instant, giveUp time.Duration) bool {
	return k.open(heard) >= leastAsked && now.Sub(k.last) <= standsStill && now.Sub(k.first) >= giveUp
}

// aliveAt returns when the peer is asked next whether it is there.
func (n *nativeSending) aliveAt() ack.Instant {
	k := &n.alive
	switch asks := k.open(n.heard.lived); {
	case n.cfg.KeepAlive == 0:
		return sched.Never
	case asks == 0:
		return max(n.heard.lived, n.since).Add(n.cfg.KeepAlive)
	default:
		return k.last.Add(n.pauseAwaited(asks - 1))
	}
}
