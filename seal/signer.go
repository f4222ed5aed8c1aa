package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
)

// signer shows, and looks for, what shows that who made a datagram of a handshake has the key. It covers all but
// itself, so also which of them that is, and who says it to whom. What is made with the key of the one before costs little.
type signer struct {
	key  *Key
	hash hash.Hash
	sum  [sha256.Size]byte
}

// signLabel keeps these apart from whatever else might be made with a key in that way. With it a question is one block.
var signLabel = []byte("dgrdma seal handshake")

// of returns it. It serves until the next one is wanted.
func (s *signer) of(key *Key, b []byte) []byte {
	if s.key != key {
		s.key, s.hash = key, hmac.New(sha256.New, key[:])
	}
	s.hash.Reset()
	s.hash.Write(signLabel)
	s.hash.Write(b[:macAt])
	s.hash.Write(b[noiseAt:])
	return s.hash.Sum(s.sum[:0])[:macSize]
}

// sign writes it into a datagram that has everything else.
func (s *signer) sign(key *Key, b []byte) { copy(b[macAt:noiseAt], s.of(key, b)) }

// signed reports whether who made b has the key. It may be an old one.
func (s *signer) signed(key *Key, b []byte) bool { return hmac.Equal(s.of(key, b), b[macAt:noiseAt]) }
