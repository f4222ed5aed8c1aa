package memory

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Errors of granting.
var (
	ErrAssociation   = errors.New("memory: not for this stream")
	ErrBounds        = errors.New("memory: out of bounds")
	ErrInvalidated   = errors.New("memory: the region was invalidated")
	ErrNotPersistent = errors.New("memory: cannot be made persistent")
	ErrRights        = errors.New("memory: rights are missing")
	ErrTooMany       = errors.New("memory: half of all STags are in use: invalidate some")
)

// Errors of what a peer asked for. Each has in it the [ddp.Fault] to answer with, for
// errors.As.
var (
	ErrMisaligned = fmt.Errorf("memory: the address of an atomic operation is not a multiple of 8: %w", ddp.OperationStream)
	ErrLost       = fmt.Errorf("memory: the system cannot get at the bytes any more: was their file cut, or is its disk broken or full? %w", ddp.OperationStream)
	ErrNoFlush    = fmt.Errorf("memory: a Flush that asks for nothing: %w", ddp.OperationStream)
	ErrMismatch   = fmt.Errorf("memory: the bytes in storage are not those that were to be verified: %w", ddp.OperationStream)
	ErrHashLength = fmt.Errorf("memory: the hash to compare with has not the length of the region's algorithm: %w", ddp.OperationStream)
)

// requested turns what [ddp.Span.Touch] says of a segment into what is said of a request.
func requested(err error) error {
	switch err {
	case ddp.TaggedSTag:
		return ddp.ProtectionSTag
	case ddp.LocalDDP:
		return ErrLost
	}
	return err
}
