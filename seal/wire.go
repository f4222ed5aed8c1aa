package seal

import "encoding/binary"

const (
	idsSize     = 4
	counterSize = 5
	flagsAt     = idsSize + counterSize
	saltSize    = 7
	headSize    = flagsAt + 1 + saltSize
	tagSize     = 16

	// Overhead is how much longer a sealed frame is.
	Overhead = headSize - idsSize + tagSize

	// Flag is set in the flags of what is sealed, or of a handshake. In frames it is reserved.
	Flag          = 0x80
	flagHandshake = 0x40

	// Indexes is how many keys the flags can tell apart.
	Indexes = 8
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

// KindOf returns what a datagram is, by its flags and its length alone.
func KindOf(b []byte) Kind {
	if len(b) <= flagsAt || b[flagsAt]&Flag == 0 {
		return Plain
	}
	flags := b[flagsAt]
	if flags&flagHandshake == 0 {
		if flags&0x31 != 0 || len(b) < leastPayload {
			return Plain
		}
		return Sealed
	}
	k := Kind(flags>>1&7) + Question
	if flags&0x31 != 0 || k > Second || len(b) != sizes[k] {
		return Plain
	}
	return k
}

const (
	handshakeHead = flagsAt + 1
	nonceSize     = 8
	challengeSize = 16
	saidAt        = handshakeHead + nonceSize + challengeSize
	noiseSize     = 32 + offerSize + tagSize // the key of the handshake, and a sealed payload
	// leastPayload is how short a datagram may be on Ethernet: to shorter ones the link adds bytes, and nobody says how many.
	leastPayload = 46
	questionSize = max(saidAt, leastPayload)
	leastPlain   = leastPayload - Overhead // frames are padded to that
)

var sizes = [...]int{
	Question:  questionSize,
	Challenge: questionSize,
	First:     saidAt + noiseSize,
	Second:    handshakeHead + nonceSize + noiseSize,
}

// MostHandshake is the length of the longest datagram of a handshake.
const MostHandshake = saidAt + noiseSize

// nonceIn returns what a question, what answers it, and what follows have in common.
func nonceIn(b []byte) [nonceSize]byte { return [nonceSize]byte(b[handshakeHead:]) }

// begin writes the head of a datagram of a handshake.
func begin(dst []byte, k Kind, ids [idsSize]byte) []byte {
	dst = append(dst, ids[:]...)
	dst = append(dst, make([]byte, counterSize)...)
	return append(dst, Flag|flagHandshake|byte(k-Question)<<1)
}

// padded lengthens a datagram that begins there to what a question has.
func padded(b []byte, at int) []byte { return append(b, make([]byte, questionSize-(len(b)-at))...) }

func putCounter(b []byte, n uint64) {
	binary.LittleEndian.PutUint32(b, uint32(n))
	b[4] = byte(n >> 32)
}

func counterOf(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) | uint64(b[4])<<32 }

// Swapped returns the ids of an answer.
func Swapped(ids [idsSize]byte) [idsSize]byte { return [idsSize]byte{ids[2], ids[3], ids[0], ids[1]} }

// Index returns under which of the receiver's keys a sealed frame is.
func Index(b []byte) byte { return b[flagsAt] >> 1 & (Indexes - 1) }
