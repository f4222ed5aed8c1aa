package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

const (
	// challengeTime is after what time challenges change; those before count, too. Long beside the time in which
	// one comes back, all tries included.
	challengeTime = 30 * time.Second
	// mostUsed bounds the memory of challenges that were used.
	mostUsed = 1 << 16
)

// Challenger makes challenges, of which it keeps nothing until they are used.
type Challenger struct {
	mac    hash.Hash
	buf    []byte
	slot   int64
	used   [2]map[[challengeSize]byte]struct{} // in the present slot, and in the one before
	signer signer

	// Full counts how often as many were used in a slot as are remembered, and all before became worthless.
	Full uint64
}

func (c *Challenger) follow(now time.Duration) {
	if c.mac == nil {
		c.renew()
	}
	switch slot := int64(now / challengeTime); slot - c.slot {
	case 0:
	case 1:
		c.used = [2]map[[challengeSize]byte]struct{}{nil, c.used[0]}
		c.slot = slot
	default:
		c.used = [2]map[[challengeSize]byte]struct{}{}
		c.slot = slot
	}
}

// renew makes all challenges so far worthless.
func (c *Challenger) renew() {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails
	c.mac = hmac.New(sha256.New, secret)
	c.used = [2]map[[challengeSize]byte]struct{}{}
}

func (c *Challenger) of(slot int64, ids [idsSize]byte, from, nonce []byte) (sum [challengeSize]byte) {
	b := binary.LittleEndian.AppendUint64(c.buf[:0], uint64(slot))
	b = append(b, ids[:]...)
	b = append(b, nonce...)
	b = append(b, from...) // last, because its length varies
	c.mac.Reset()
	c.mac.Write(b)
	c.buf = c.mac.Sum(b[:0])
	copy(sum[:], c.buf)
	return sum
}

// Answer appends the challenge for who sent b from that address: a question, a first message that is refused as stale, or a
// sealed datagram under a key that is not known. It is no longer than that. The key is that for the peer which b names.
func (c *Challenger) Answer(dst []byte, now time.Duration, key *Key, b, from []byte) []byte {
	c.follow(now)
	ids := [idsSize]byte(b)
	var nonce [nonceSize]byte
	if KindOf(b) != Sealed {
		nonce = nonceIn(b)
	}
	sum := c.of(c.slot, ids, from, nonce[:])
	at := len(dst)
	dst = begin(dst, Challenge, Swapped(ids))
	dst = append(dst, nonce[:]...)
	dst = append(append(dst, sum[:]...), make([]byte, macSize)...)
	c.signer.sign(key, dst[at:])
	return dst
}

// Authentic reports whether who made a question, a challenge or a first message has the key. It may be an old one.
func (c *Challenger) Authentic(key *Key, b []byte) bool { return c.signer.signed(key, b) }

// fresh reports whether a first message names a challenge that was sent to that address lately, and was not used.
func (c *Challenger) fresh(now time.Duration, b, from []byte) bool {
	c.follow(now)
	nonce, named := nonceIn(b), challengeIn(b)
	for back := range int64(2) {
		sum := c.of(c.slot-back, [idsSize]byte(b), from, nonce[:])
		if !hmac.Equal(sum[:], named[:]) {
			continue
		}
		for _, m := range c.used {
			if _, ok := m[named]; ok {
				return false
			}
		}
		return true
	}
	return false
}

// use notes that a challenge was used, by who has the key.
func (c *Challenger) use(b []byte) {
	if len(c.used[0]) == mostUsed {
		c.renew()
		c.Full++
	}
	if c.used[0] == nil {
		c.used[0] = make(map[[challengeSize]byte]struct{})
	}
	c.used[0][challengeIn(b)] = struct{}{}
}

func challengeIn(b []byte) [challengeSize]byte {
	return [challengeSize]byte(b[challengeAt:])
}
