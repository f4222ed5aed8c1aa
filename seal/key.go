package seal

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// Key is what two endpoints were given.
type Key [KeySize]byte

// ErrKey is what is wrong with the text of a key, or with who may read its file.
var ErrKey = errors.New("no key")

// NewKey draws a key.
func NewKey() (k Key) {
	rand.Read(k[:]) // never fails
	return k
}

// ParseKey reads a key as String writes it: 32 bytes in base64.
func ParseKey(s string) (k Key, err error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) != KeySize {
		return k, fmt.Errorf("%w: %w", ErrKey, errKeyText)
	}
	return Key(b), nil
}

var errKeyText = fmt.Errorf("need %d bytes in base64, as key new writes them", KeySize)

// Text returns the key as ParseKey reads it.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k[:]) }

// String tells nothing of the key: it may get into a log.
func (k Key) String() string { return "(a key)" }

// GoString is String.
func (k Key) GoString() string { return k.String() }
