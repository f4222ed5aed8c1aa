package seal

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/cpu"

	"github.com/dgrdma/dgrdma/seal/gcm"
)

const (
	// generation is how many datagrams, as a power of two, one key seals.
	generationBits = 22
	// renewAt is the counter from which on a new handshake is wanted, and mostCounter the last one.
	renewAt     = 1 << 39
	mostCounter = 1<<40 - 1
)

// suite is how frames are sealed.
type suite uint8

const (
	chacha suite = iota // by ChaCha20-Poly1305, fast everywhere
	aesGCM              // by AES-256-GCM, faster where the processor has instructions for it
)

// ours is the suite that this machine prefers.
func ours() suite {
	if cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL {
		return aesGCM
	}
	return chacha
}

func (s suite) cipher(key *[32]byte) cipher.AEAD {
	if s == chacha {
		a, err := chacha20poly1305.New(key[:])
		if err != nil {
			panic(err) // a key of that length is one
		}
		return a
	}
	return gcm.New(key)
}

// generation is a key of a direction, and which one.
type generation struct {
	number uint64
	key    [32]byte
	aead   cipher.AEAD
}

// next returns the one behind it.
func (g *generation) next(s suite) *generation {
	b, err := hkdf.Expand(sha256.New, g.key[:], "dgrdma seal, next generation", 32)
	if err != nil {
		panic(err) // of such lengths it gives
	}
	n := &generation{number: g.number + 1, key: [32]byte(b)}
	n.aead = s.cipher(&n.key)
	return n
}

// Sealing seals what leaves under one key.
type Sealing struct {
	suite suite
	index byte
	gen   *generation
	count uint64
	nonce [counterSize + saltSize]byte
}

func newSealing(s suite, key [32]byte, index byte) *Sealing {
	return &Sealing{suite: s, index: index, gen: &generation{key: key, aead: s.cipher(&key)}}
}

// Salt is what nonces of a batch have beside the counter.
type Salt [saltSize]byte

// Spent reports whether nothing more can be sealed.
func (s *Sealing) Spent() bool { return s.count > mostCounter }

// Worn reports whether it is time for a new handshake.
func (s *Sealing) Worn() bool { return s.count >= renewAt }

// SealedSize returns how long a frame of that length is then: short ones are padded.
func SealedSize(plain int) int { return max(plain, leastPlain) + Overhead }

// Seal writes a sealed frame to dst, which has room for that and does not overlap it. rest is its end, if that lies elsewhere. s is
// not spent.
func (s *Sealing) Seal(dst, plain, rest []byte, salt *Salt) []byte {
	n := s.count
	s.count++
	for s.gen.number < n>>generationBits {
		s.gen = s.gen.next(s.suite)
	}
	dst = dst[:headSize]
	copy(dst, plain[:idsSize])
	putCounter(dst[idsSize:], n)
	dst[flagsAt] = Flag | s.index<<1
	copy(dst[flagsAt+1:], salt[:])
	copy(s.nonce[:counterSize], dst[idsSize:])
	copy(s.nonce[counterSize:], salt[:])
	if n := len(plain) + len(rest); len(rest) > 0 || n < leastPlain {
		whole := dst[headSize : headSize+max(n, leastPlain)-idsSize]
		copy(whole[copy(whole, plain[idsSize:]):], rest)
		clear(whole[n-idsSize:])
		return s.gen.aead.Seal(dst, s.nonce[:], whole, dst)
	}
	return s.gen.aead.Seal(dst, s.nonce[:], plain[idsSize:], dst)
}

// Opening opens what comes under one key.
type Opening struct {
	suite               suite
	before, gen, behind *generation // nil: there is none
	window              window
	nonce               [counterSize + saltSize]byte
}

func newOpening(s suite, key [32]byte) *Opening {
	return &Opening{suite: s, gen: &generation{key: key, aead: s.cipher(&key)}}
}

// Open opens a sealed frame where it is, and returns it. Not ok: it is not authentic, or came before, or so late that
// this is not known any more; what the bytes are then is not said.
func (o *Opening) Open(b []byte) (plain []byte, ok bool) {
	n := counterOf(b[idsSize:])
	if !o.window.may(n) {
		return nil, false
	}
	g := o.generation(n >> generationBits)
	if g == nil {
		return nil, false
	}
	copy(o.nonce[:counterSize], b[idsSize:])
	copy(o.nonce[counterSize:], b[flagsAt+1:])
	if _, err := g.aead.Open(b[headSize:headSize], o.nonce[:], b[headSize:], b[:headSize]); err != nil {
		return nil, false
	}
	o.window.mark(n)
	if g == o.behind {
		o.before, o.gen, o.behind = o.gen, g, nil
	}
	copy(b[headSize-idsSize:], b[:idsSize])
	return b[headSize-idsSize : len(b)-tagSize], true
}

// generation returns that one, or nil. The one behind the present is derived once, whatever comes.
func (o *Opening) generation(number uint64) *generation {
	switch number {
	case o.gen.number:
		return o.gen
	case o.gen.number + 1:
		if o.behind == nil {
			o.behind = o.gen.next(o.suite)
		}
		return o.behind
	}
	if o.before != nil && o.before.number == number {
		return o.before
	}
	return nil
}
