package xdr

import (
	"errors"
	"fmt"
)

// ErrInvalid is what each [Error] wraps: a message is not what its type says.
var ErrInvalid = errors.New("invalid XDR")

// Error says what is wrong in a message, and where.
type Error struct {
	Offset  int // in the inline bytes
	Problem string
	// Misplaced tells that an item that travelled by itself is at a place where no such item may be,
	// or has another length than its message says. This is the fault of the transport at the peer,
	// not of the program there.
	Misplaced bool
	// Long tells that an item is longer than the place that [Decoder.Detach] gave for it.
	Long bool
}

func (e *Error) Error() string {
	return fmt.Sprintf("octet %d of the message: %s", e.Offset, e.Problem)
}

func (e *Error) Unwrap() error { return ErrInvalid }
