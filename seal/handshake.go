package seal

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/flynn/noise"
	"golang.org/x/crypto/curve25519"
)

var noiseSuite = noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashBLAKE2s)

// Instance names one run of a program, which has other keys than the one before.
type Instance [8]byte

// NewInstance draws one.
func NewInstance() (i Instance) {
	rand.Read(i[:]) // never fails
	return i
}

// Keys are what a handshake ends with.
type Keys struct {
	Sealing *Sealing
	Opening *Opening
	Index   byte     // under which the peer seals
	Peer    Instance // of the peer
}

// state begins a handshake. The ids and the nonce are part of it: what is said between two is worth nothing between others, nor
// with another question. The challenge is not: a second message that answers one challenge is good when there is another one.
func state(initiates bool, key *Key, first []byte) *noise.HandshakeState {
	prologue := append([]byte("dgrdma seal 1"), first[:challengeAt]...)
	s, err := noise.NewHandshakeState(noise.Config{
		CipherSuite: noiseSuite, Random: rand.Reader, Pattern: noise.HandshakeNN, Initiator: initiates,
		Prologue: prologue, PresharedKey: key[:], PresharedKeyPlacement: 0,
	})
	if err != nil {
		panic(fmt.Sprintf("seal: %v", err)) // all of that is ours
	}
	return s
}

// offer is what both say of themselves.
type offer struct {
	suite    suite    // that is preferred, or chosen
	index    byte     // that frames for it have
	instance Instance // of the program
}

func (o *offer) bytes() []byte { return append([]byte{byte(o.suite), o.index}, o.instance[:]...) }

func (o *offer) read(b []byte) bool {
	if len(b) != offerSize || b[0] > byte(aesGCM) || b[1] >= Indexes {
		return false
	}
	o.suite, o.index, o.instance = suite(b[0]), b[1], Instance(b[2:])
	return true
}

// Asking is the side of a handshake that begins it.
type Asking struct {
	key    *Key
	signer signer
	nonce  [nonceSize]byte
	own    offer
	first  []byte // the first message; nil: there was no challenge yet
	noise  *noise.HandshakeState
}

// Ask begins a handshake, in which the peer is told to seal under that index.
func Ask(key *Key, own Instance, index byte) *Asking {
	a := &Asking{key: key, own: offer{ours(), index, own}}
	// Half of the nonce names who asks: it is told by that when somebody sends back what it sent.
	copy(a.nonce[:], own[:nonceSize/2])
	rand.Read(a.nonce[nonceSize/2:]) // never fails
	return a
}

// Reflected reports whether a datagram of a handshake, a question or a first message, began with ourselves.
func Reflected(b []byte, own Instance) bool {
	n := nonceIn(b)
	return bytes.Equal(n[:nonceSize/2], own[:nonceSize/2])
}

// Again appends what is to be answered: the question for a challenge, or the first message, the same until there is another challenge.
func (a *Asking) Again(dst []byte, ids [idsSize]byte) []byte {
	if a.first != nil {
		return append(dst, a.first...)
	}
	at := len(dst)
	dst = begin(dst, Question, ids)
	dst = append(append(dst, a.nonce[:]...), make([]byte, challengeSize+macSize)...)
	a.signer.sign(a.key, dst[at:])
	return dst
}

// Challenged reports whether there is a first message by now.
func (a *Asking) Challenged() bool { return a.first != nil }

// Take takes a challenge, which the first message has in it from then on. What Noise says stays: whichever of the challenges the
// peer takes, its second message fits. Not ok: it answers no question of ours, or is the same, or is of who has another key.
func (a *Asking) Take(challenge []byte) (ok bool, why Reason) {
	switch {
	case nonceIn(challenge) != a.nonce, a.first != nil && challengeIn(challenge) == challengeIn(a.first):
		return false, Stale
	case !a.signer.signed(a.key, challenge):
		return false, WrongKey
	case a.first == nil:
		a.begin(Swapped([idsSize]byte(challenge)))
	}
	copy(a.first[challengeAt:macAt], challenge[challengeAt:])
	a.signer.sign(a.key, a.first)
	return true, 0
}

// begin makes a first message that still lacks its challenge.
func (a *Asking) begin(ids [idsSize]byte) {
	b := append(begin(nil, First, ids), a.nonce[:]...)
	a.noise = state(true, a.key, b)
	b, _, _, err := a.noise.WriteMessage(append(b, make([]byte, challengeSize+macSize)...), a.own.bytes())
	if err != nil {
		panic(fmt.Sprintf("seal: %v", err)) // the key of the handshake is ours
	}
	a.first = b
}

// anyScalar tells keys apart with which every secret is the same.
var anyScalar [curve25519.ScalarSize]byte

// Second takes the second message. Not ok: it is none to our first.
func (a *Asking) Second(b []byte) (k Keys, ok bool) {
	if a.first == nil || nonceIn(b) != a.nonce || !a.signer.signed(a.key, b) {
		return k, false // before any work that takes longer
	}
	// Of a key with which every secret is the same the library says so amid the message, and takes nothing back.
	if _, err := curve25519.X25519(anyScalar[:], b[noiseAt:][:curve25519.PointSize]); err != nil {
		return k, false
	}
	payload, out, in, err := a.noise.ReadMessage(nil, b[noiseAt:])
	var theirs offer
	if err != nil || !theirs.read(payload) || theirs.suite > a.own.suite {
		return k, false
	}
	return Keys{newSealing(theirs.suite, out.UnsafeKey(), theirs.index), newOpening(theirs.suite, in.UnsafeKey()), a.own.index, theirs.instance}, true
}

// Reason says why a challenge or a first message is refused.
type Reason uint8

const (
	Stale    Reason = iota // its nonce or challenge is none of ours, over, or was used
	WrongKey               // whoever made it has another key
)

// Fresh is a first message that was made with the key, for a challenge that had not served.
type Fresh struct {
	by     *Challenger
	key    *Key
	noise  *noise.HandshakeState
	first  []byte
	theirs offer
}

// Check looks at a first message that came from that address, and returns nil if it is refused. Its challenge has served
// then.
func (c *Challenger) Check(now time.Duration, key *Key, b, from []byte) (f *Fresh, why Reason) {
	if !c.fresh(now, b, from) {
		return nil, Stale
	}
	if !c.signer.signed(key, b) {
		return nil, WrongKey
	}
	f = &Fresh{by: c, key: key, noise: state(false, key, b), first: b}
	payload, _, _, err := f.noise.ReadMessage(nil, b[noiseAt:])
	if err != nil || !f.theirs.read(payload) {
		return nil, WrongKey
	}
	c.use(b)
	return f, 0
}

// Second appends the second message. The index is that under which who began shall seal. Not ok: its key of the handshake is
// no good one.
func (f *Fresh) Second(dst []byte, own Instance, index byte) (_ []byte, k Keys, ok bool) {
	s := min(f.theirs.suite, ours())
	at := len(dst)
	dst = begin(dst, Second, Swapped([idsSize]byte(f.first)))
	dst = append(append(dst, f.first[handshakeHead:macAt]...), make([]byte, macSize)...)
	o := offer{s, index, own}
	dst, in, out, err := f.noise.WriteMessage(dst, o.bytes())
	if err != nil {
		return dst, k, false
	}
	f.by.signer.sign(f.key, dst[at:])
	return dst, Keys{newSealing(s, out.UnsafeKey(), f.theirs.index), newOpening(s, in.UnsafeKey()), index, f.theirs.instance}, true
}
