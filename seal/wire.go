package seal

import "github.com/dgrdma/dgrdma/seal/datagram"

const (
	idsSize     = datagram.IDsSize
	counterSize = datagram.CounterSize
	flagsAt     = datagram.FlagsAt
	saltSize    = datagram.SaltSize
	headSize    = datagram.HeadSize
	tagSize     = datagram.TagSize

	handshakeHead = datagram.HandshakeHead
	nonceSize     = datagram.NonceSize
	challengeSize = datagram.ChallengeSize
	offerSize     = datagram.OfferSize
	challengeAt   = handshakeHead + nonceSize
	macAt         = challengeAt + challengeSize
	macSize       = datagram.MACSize
	noiseAt       = macAt + macSize // in a first or second message

	leastPlain = datagram.LeastPayload - Overhead // frames are padded to that
)

// What package datagram says of datagrams, for endpoints.
const (
	Overhead      = datagram.Overhead
	MostHandshake = datagram.MostHandshake
	Flag          = datagram.Flag
	Indexes       = datagram.Indexes

	Plain     = datagram.Plain
	Sealed    = datagram.Sealed
	Question  = datagram.Question
	Challenge = datagram.Challenge
	First     = datagram.First
	Second    = datagram.Second
)

// Kind is what a datagram between endpoints with a key is.
type Kind = datagram.Kind

// KindOf returns what a datagram is, by its flags and its length alone.
func KindOf(b []byte) Kind { return datagram.KindOf(b) }

// Index returns under which of the receiver's keys a sealed frame is.
func Index(b []byte) byte { return datagram.Index(b) }

// Unasked reports whether a challenge is none that anybody asked for.
func Unasked(b []byte) bool { return datagram.Unasked(b) }

func nonceIn(b []byte) [nonceSize]byte { return datagram.Nonce(b) }

// begin writes the head of a datagram of a handshake.
func begin(dst []byte, k Kind, ids [idsSize]byte) []byte {
	dst = append(dst, ids[:]...)
	dst = append(dst, make([]byte, counterSize)...)
	return append(dst, k.Flags())
}

func putCounter(b []byte, n uint64) { datagram.PutUint40(b, n) }

func counterOf(b []byte) uint64 { return datagram.Uint40(b) }

// Swapped returns the ids of an answer.
func Swapped(ids [idsSize]byte) [idsSize]byte { return [idsSize]byte{ids[2], ids[3], ids[0], ids[1]} }
