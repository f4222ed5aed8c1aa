package endpoint

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// Who can forge a source address can make up any number of peers. So a stranger is
// answered, and nothing is kept of it, until it shows that it got the answer: our
// life in that answer is not drawn but computed, a keyed hash of who asked, and
// only who names it in return becomes a peer. (TCP calls this SYN cookies, QUIC
// address validation.)
const (
	// cookieTime is after what time the hash changes; the one before counts, too. Long
	// beside the time in which a hello comes back, all tries included.
	cookieTime = ack.Instant(30 * time.Second)
	// mostSpent bounds the memory of cookies that were used: as many as an endpoint can
	// have peers.
	mostSpent = 1 << 16
)

// cookie is what a connection begins with that its peer was told before the
// connection was made.
type cookie struct {
	life  incarnation
	first ack.Wide // frame id
}

// introduction is a pair of lives that were introduced to each other.
type introduction struct {
	key          peerKey
	mine, theirs incarnation
}

// cookies computes them.
type cookies struct {
	mu  sync.Mutex
	mac hash.Hash
	buf []byte
	// spent are the introductions that made a peer. Once it is closed, a late copy of
	// its hello must not bring it back: the frames behind would be new again.
	spent [2]map[introduction]struct{} // of the present time, and of that before
	epoch ack.Instant                  // the present time, in units of cookieTime
}

func (k *cookies) init() {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	k.mac = hmac.New(sha256.New, key)
	k.spent = [2]map[introduction]struct{}{}
}

// of returns what a peer is told that asks in that life, at that time.
func (k *cookies) of(epoch ack.Instant, peer peerKey, life incarnation) cookie {
	le := binary.LittleEndian
	b := le.AppendUint64(k.buf[:0], uint64(epoch))
	b = le.AppendUint32(b, uint32(life))
	b = le.AppendUint16(b, uint16(peer.ours))
	b = le.AppendUint16(b, uint16(peer.theirs))
	k.buf = peer.addr.Append(b) // last, because its length varies
	k.mac.Reset()
	k.mac.Write(k.buf)
	sum := k.mac.Sum(k.buf[:0])
	c := cookie{incarnation(le.Uint32(sum)), ack.Wide(le.Uint32(sum[4:]))}
	if c.life == unknown {
		c.life++
	}
	return c
}

// follow keeps up with the time.
func (k *cookies) follow(now ack.Instant) {
	if k.mac == nil {
		k.init()
	}
	switch epoch := now / cookieTime; epoch - k.epoch {
	case 0:
	case 1:
		k.spent = [2]map[introduction]struct{}{nil, k.spent[0]}
		k.epoch = epoch
	default:
		k.spent = [2]map[introduction]struct{}{}
		k.epoch = epoch
	}
}

// offer returns the cookie for a stranger that asks in that life. Not ok: that life
// was a peer already, and is over.
func (k *cookies) offer(now ack.Instant, peer peerKey, life incarnation) (c cookie, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.follow(now)
	c = k.of(k.epoch, peer, life)
	return c, !k.isSpent(introduction{peer, c.life, life})
}

// find returns the cookie that a hello names, if we told it its sender, and whether
// it is fresh.
func (k *cookies) find(now ack.Instant, peer peerKey, life, named incarnation) (c cookie, ok, fresh bool) {
	if named == unknown {
		return cookie{}, false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.follow(now)
	for back := range ack.Instant(2) {
		if c = k.of(k.epoch-back, peer, life); c.life == named {
			return c, true, !k.isSpent(introduction{peer, named, life})
		}
	}
	return cookie{}, false, false
}

// any returns a life for a peer to ask for, whatever its own: who names it has heard
// from us, and becomes no peer by that.
func (k *cookies) any(now ack.Instant, peer peerKey) incarnation {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.follow(now)
	return k.of(k.epoch, peer, unknown).life // nobody asks in it
}

func (k *cookies) isSpent(i introduction) bool {
	for _, m := range k.spent {
		if _, ok := m[i]; ok {
			return true
		}
	}
	return false
}

// spend notes that an introduction makes a peer: for the time in which somebody was told
// something last, and the next. No longer is it named. full: there were as many already as are
// remembered, and nothing told so far counts any more.
func (k *cookies) spend(i introduction) (full bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mac == nil {
		return false // nobody was told anything
	}
	if full = len(k.spent[0]) == mostSpent; full {
		k.init()
	}
	if k.spent[0] == nil {
		k.spent[0] = make(map[introduction]struct{})
	}
	k.spent[0][i] = struct{}{}
	return full
}
