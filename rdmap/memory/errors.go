package memory

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Errors of granting.
var (
	ErrAssociation   = errors.New("not for this stream")
	ErrBounds        = errors.New("out of bounds")
	ErrInvalidated   = errors.New("the region was invalidated")
	ErrNotPersistent = errors.New("cannot be made persistent")
	ErrRights        = errors.New("rights are missing")
	ErrTooMany       = errors.New("half of all STags are in use: invalidate some")
)

// Errors of what a peer asked for. Each has in it the [ddp.Fault] to answer with, for
// errors.As.
var (
	ErrMisaligned = fmt.Errorf("the address of an atomic operation is not a multiple of 8: %w", ddp.OperationStream)
	// ErrLost is in a [LostError], which has the fault.
	ErrLost       = errors.New("the system cannot get at the bytes any more: was their file cut, or is its disk broken or full?")
	ErrNoFlush    = fmt.Errorf("a Flush that asks for nothing: %w", ddp.OperationStream)
	ErrMismatch   = fmt.Errorf("the bytes in storage are not those that were to be verified: %w", ddp.OperationStream)
	ErrHashLength = fmt.Errorf("the hash to compare with has not the length of the region's algorithm: %w", ddp.OperationStream)
)

// LostError says which region it is whose bytes the system cannot get at any more.
type LostError struct {
	// STag is that of the region, also where a window of it was used.
	STag uint32
	// Fault is what the peer is told.
	Fault ddp.Fault

	region string
	err    error
}

// Error names the region, and its file if a file was registered.
func (e *LostError) Error() string { return fmt.Sprintf("%s: %v (%v)", e.region, e.err, e.Fault) }

// Unwrap returns the reason, which every such error has in common, and the fault.
func (e *LostError) Unwrap() []error { return []error{e.err, e.Fault} }

// Lost is the error of a stream for which the system could not get at bytes, a part of the grant's, from the one at at on.
func (g *Grant) Lost(bytes []byte, at int, f ddp.Fault) error {
	whole := g.region.Grant
	return whole.lost(fmt.Errorf("byte %d: %w", offset(whole.first.Load(), bytes)+at, ErrLost), f)
}

// lost makes a LostError of an error of the region's file that has ErrLost in it. Others stay what they are.
func (g *Grant) lost(err error, f ddp.Fault) error {
	if named := new(LostError); !errors.Is(err, ErrLost) || errors.As(err, &named) {
		return err
	}
	whole := g.region.Grant
	region := fmt.Sprintf("region of %d bytes, STag %#x", whole.Len(), whole.STag())
	if file := g.region.file; file != nil {
		region = fmt.Sprintf("region of %d bytes of %s, STag %#x", whole.Len(), file.file.Name(), whole.STag())
	}
	return &LostError{STag: whole.STag(), Fault: f, region: region, err: err}
}

// requested turns what [ddp.Span.Touch] says of a segment into what is said of a request.
func (g *Grant) requested(s ddp.Span, err error) error {
	switch err {
	case ddp.TaggedSTag:
		return ddp.ProtectionSTag
	case ddp.LocalDDP:
		at, _ := s.Lost()
		return g.Lost(s.Bytes, at, ddp.OperationStream)
	}
	return err
}
