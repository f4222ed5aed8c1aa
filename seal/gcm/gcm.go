// Package gcm is AES-256-GCM, which encrypts frames: where the processor has AES and carry-less multiplication for
// registers of 512 bits, four blocks with each instruction, and what the standard library has elsewhere.
package gcm

import (
	"crypto/aes"
	"crypto/cipher"
)

// New returns AES-256-GCM under a key, with nonces of 12 bytes and tags of 16. It keeps to the contract of cipher.AEAD:
// several goroutines may use it at a time, and what is not authentic leaves zeros where the text would be.
func New(secret *[32]byte) cipher.AEAD {
	if a, ok := fast(secret); ok {
		return a
	}
	return plain(secret)
}

// plain returns that of the standard library.
func plain(secret *[32]byte) cipher.AEAD {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // a key of that length is one
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return a
}
