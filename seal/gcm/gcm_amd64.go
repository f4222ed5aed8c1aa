package gcm

import (
	"crypto/cipher"
	"crypto/fips140"
	"errors"
	"slices"

	"golang.org/x/sys/cpu"
)

// wide reports whether the processor encrypts four blocks with one instruction, and the system keeps the registers for that.
// Who asks for Go's validated module gets that instead.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VAES &&
	cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasAVX2 && cpu.X86.HasBMI2 && !fips140.Enabled()

// mostText is how long a text may be: a block for each counter.
const mostText = 16 * (1<<32 - 2)

var errOpen = errors.New("gcm: what was to be opened is not authentic")

const (
	nonceSize = 12
	tagSize   = 16
)

// key is what the assembly makes of one. It reads beyond the powers, up to the end, what it multiplies with zeros. There is no
// pointer in it: so it begins with a line of the cache.
type key struct {
	powers [36][16]byte // of H
	rounds [15][16]byte
}

//go:noescape
func expand(k *key, secret *[32]byte)

// seal writes as much text as there is in src, encrypted, and the tag to dst.
//
//go:noescape
func seal(k *key, dst, src []byte, nonce *[nonceSize]byte, data []byte)

// open decrypts src, behind which is the tag, to dst, which is as long as the text, and reports whether it is authentic.
//
//go:noescape
func open(k *key, dst, src []byte, nonce *[nonceSize]byte, data []byte) (authentic bool)

func fast(secret *[32]byte) (cipher.AEAD, bool) {
	if !wide {
		return nil, false
	}
	k := new(key)
	expand(k, secret)
	return k, true
}

func (k *key) NonceSize() int { return nonceSize }

func (k *key) Overhead() int { return tagSize }

func (k *key) Seal(dst, nonce, text, data []byte) []byte {
	if len(nonce) != nonceSize {
		panic("gcm: a nonce has 12 bytes")
	}
	if uint64(len(text)) > mostText {
		panic("gcm: the text is too long")
	}
	n := len(dst)
	dst = slices.Grow(dst, len(text)+tagSize)[:n+len(text)+tagSize]
	if crosses(dst[n:], text) {
		panic("gcm: the text is, in part, where it is to go")
	}
	seal(k, dst[n:], text, (*[nonceSize]byte)(nonce), data)
	return dst
}

func (k *key) Open(dst, nonce, sealed, data []byte) ([]byte, error) {
	if len(nonce) != nonceSize {
		panic("gcm: a nonce has 12 bytes")
	}
	if len(sealed) < tagSize || uint64(len(sealed)) > mostText+tagSize {
		return nil, errOpen
	}
	n, text := len(dst), len(sealed)-tagSize
	dst = slices.Grow(dst, text)[:n+text]
	if crosses(dst[n:], sealed) {
		panic("gcm: the text is, in part, where it is to go")
	}
	if !open(k, dst[n:], sealed, (*[nonceSize]byte)(nonce), data) {
		clear(dst[n:])
		return nil, errOpen
	}
	return dst, nil
}
