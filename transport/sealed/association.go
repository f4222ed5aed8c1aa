package sealed

import (
	"bytes"
	"container/list"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/seal"
)

// association is what keys two ids at two addresses share, and the handshake for new ones.
type association struct {
	pair    Pair
	psk     *seal.Key
	sealing atomic.Pointer[seal.Sealing] // nil: there is no key yet
	heard   atomic.Int64                 // an ack.Instant: when something came that is authentic
	latest  atomic.Uint32                // the index of that
	gone    atomic.Bool                  // it is forgotten

	// Guarded by the layer's mutex.
	asking   *seal.Asking // the handshake that we began, until it ends
	begun    ack.Instant  // when it was first asked for, or first challenged
	askedAt  ack.Instant
	daredAt  ack.Instant // when there was a challenge to our question, also one with another key
	asks     int
	daring   ack.Instant
	dared    int           // how many challenges were answered since then
	drawn    byte          // the index of the newest key
	answered bool          // there was a challenge to our question: an endpoint is there
	hinted   bool          // the peer may have lost its keys
	passing  *list.Element // nil: it has a connection
	passed   uint64        // which of the passing ones it was

	// Owned by the sender.
	sent   ack.Instant
	silent ack.Instant // when something was sent first since something was heard
	rested bool        // a pause since then was taken for one in which no answer was due

	// Owned by the receiver.
	keys  [mostKeys]received
	peer  seal.Instance
	first []byte // the last first message that was answered, and how
	reply []byte
}

// received is a key of the receiver's.
type received struct {
	opening *seal.Opening
	sealing *seal.Sealing // of who answered a handshake: used once something comes under this key, when the peer has it, too
	peer    seal.Instance
	used    ack.Instant
}

// keyFades is how long a key serves under which nothing comes while something comes under another one: what was held back
// for longer is worth nothing. Arbitrary: many round trips.
const keyFades = 8 * time.Second

// mostKeys is how many keys are kept of a peer under which it may seal: two that it used last, and two of handshakes that have not
// ended, one begun by each side. That bounds what one that begins handshakes without end has us keep.
const mostKeys = 4

const _ = uint(seal.Indexes - mostKeys)

// draw returns the index for a new key: the one that was drawn longest ago, and under which nothing came last. Guarded by the
// layer's mutex.
func (a *association) draw() byte {
	a.drawn = (a.drawn + 1) % mostKeys
	if uint32(a.drawn) == a.latest.Load() {
		a.drawn = (a.drawn + 1) % mostKeys
	}
	return a.drawn
}

// promise takes a key of which the peer does not know yet that it is used.
func (a *association) promise(now ack.Instant, k seal.Keys) {
	a.keys[k.Index] = received{opening: k.Opening, sealing: k.Sealing, peer: k.Peer, used: now}
}

// confirm takes a key that the peer has.
func (a *association) confirm(now ack.Instant, index byte, s *seal.Sealing) {
	k := &a.keys[index]
	k.sealing, k.used = nil, now
	if k.peer != a.peer { // it began again, and nothing of what it was before is taken
		for i := range a.keys {
			if a.keys[i].peer != k.peer {
				a.keys[i] = received{}
			}
		}
		a.peer = k.peer
	}
	a.latest.Store(uint32(index))
	a.sealing.Store(s)
}

// opens opens a sealed frame, or returns nil. known: there is such a key.
func (a *association) opens(now ack.Instant, b []byte) (plain []byte, known bool) {
	i := seal.Index(b)
	if i >= mostKeys {
		return nil, false
	}
	k := &a.keys[i]
	heard := ack.Instant(a.heard.Load())
	if k.opening != nil && heard.Sub(k.used) > keyFades {
		*k = received{}
	}
	if k.opening == nil {
		return nil, false
	}
	plain, ok := k.opening.Open(b)
	if !ok {
		return nil, true
	}
	if k.sealing != nil {
		a.confirm(now, i, k.sealing)
	}
	k.used = now
	if uint32(i) != a.latest.Load() {
		a.latest.Store(uint32(i))
	}
	if heard != now { // it is the same for a batch, and to look is cheaper than to store
		a.heard.Store(int64(now))
	}
	return plain, true
}

// unheard returns for how long frames are sent, and nothing authentic comes. It belongs to the sender.
func (a *association) unheard(now ack.Instant, rest time.Duration) time.Duration {
	switch {
	case a.silent <= ack.Instant(a.heard.Load()):
		a.silent, a.rested = now, false
	case !a.rested && now.Sub(a.sent) > rest:
		a.silent, a.rested = now, true // what was sent before may have been an acknowledgement
	}
	a.sent = now
	return now.Sub(a.silent)
}

// repeats reports whether that is the first message that was answered last.
func (a *association) repeats(b []byte) bool { return a.first != nil && bytes.Equal(a.first, b) }
