// Package datagram knows what the datagrams of package seal look like to who has no key: all that can be said of one in a
// capture.
package datagram

import "encoding/binary"

// Where things are in a datagram.
const (
	IDsSize     = 4
	CounterSize = 5
	FlagsAt     = IDsSize + CounterSize
	SaltSize    = 7
	HeadSize    = FlagsAt + 1 + SaltSize
	TagSize     = 16

	// Overhead is how much longer a sealed frame is.
	Overhead = HeadSize - IDsSize + TagSize

	// Flag is set in the flags of what is sealed, or of a handshake. In frames it is reserved.
	Flag          = 0x80
	FlagHandshake = 0x40
	FlagsNever    = 0x31 // of which none is set beside Flag

	// Indexes is how many keys the flags can tell apart.
	Indexes = 8

	HandshakeHead = FlagsAt + 1
	NonceSize     = 8
	ChallengeSize = 16
	MACSize       = 12
	OfferSize     = 2 + 8                    // what both say of themselves
	NoiseSize     = 32 + OfferSize + TagSize // the key of the handshake, and a sealed payload

	// LeastPayload is how short a datagram may be on Ethernet: to shorter ones the link adds bytes, and nobody says how many.
	LeastPayload = 46
	QuestionSize = HandshakeHead + NonceSize + ChallengeSize + MACSize // in a question the challenge is zeros

	// MostHandshake is the length of the longest datagram of a handshake.
	MostHandshake = QuestionSize + NoiseSize
)

// Kind is what a datagram between endpoints with a key is.
type Kind uint8

const (
	Plain     Kind = iota // a frame that is not sealed, or nothing that we know
	Sealed                // a sealed frame
	Question              // asks for a challenge
	Challenge             // answers a question
	First                 // has the first message of the handshake
	Second                // has the second
)

var names = [...]string{"plain", "sealed", "question", "challenge", "first", "second"}

func (k Kind) String() string { return names[k] }

// IsHandshake reports whether a datagram of that kind is one of the four of a handshake.
func (k Kind) IsHandshake() bool { return k >= Question }

var sizes = [...]int{
	Question:  QuestionSize,
	Challenge: QuestionSize,
	First:     MostHandshake,
	Second:    MostHandshake,
}

// Size returns how long a datagram of a handshake is.
func (k Kind) Size() int { return sizes[k] }

// Flags returns those of a datagram of a handshake.
func (k Kind) Flags() byte { return Flag | FlagHandshake | byte(k-Question)<<1 }

// Fits reports whether a datagram of that kind may be so long.
func (k Kind) Fits(n int) bool {
	if k.IsHandshake() {
		return n == sizes[k]
	}
	return n >= LeastPayload
}

// KindOf returns what a datagram is, by its flags and its length alone.
func KindOf(b []byte) Kind {
	if len(b) <= FlagsAt {
		return Plain
	}
	if k := KindBy(b[FlagsAt]); k.Fits(len(b)) {
		return k
	}
	return Plain
}

// KindBy returns what a datagram of the right length is by its flags.
func KindBy(flags byte) Kind {
	switch {
	case flags&Flag == 0, flags&FlagsNever != 0:
		return Plain
	case flags&FlagHandshake == 0:
		return Sealed
	}
	if k := Kind(flags>>1&7) + Question; k <= Second {
		return k
	}
	return Plain
}

// Counter returns the counter of a sealed frame.
func Counter(b []byte) uint64 { return Uint40(b[IDsSize:]) }

// Uint40 reads a counter.
func Uint40(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) | uint64(b[4])<<32 }

// PutUint40 writes a counter.
func PutUint40(b []byte, n uint64) {
	binary.LittleEndian.PutUint32(b, uint32(n))
	b[4] = byte(n >> 32)
}

// Index returns under which of the receiver's keys a sealed frame is.
func Index(b []byte) byte { return b[FlagsAt] >> 1 & (Indexes - 1) }

// Salt returns what the nonces of a batch have beside the counter.
func Salt(b []byte) []byte { return b[FlagsAt+1 : HeadSize] }

// Nonce returns what a question, what answers it, and what follows have in common.
func Nonce(b []byte) [NonceSize]byte { return [NonceSize]byte(b[HandshakeHead:]) }

// Unasked reports whether a challenge is none that anybody asked for: it answers a sealed datagram of which the peer does
// not know the key.
func Unasked(b []byte) bool { return Nonce(b) == [NonceSize]byte{} }
