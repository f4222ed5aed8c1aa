package ddp

import (
	"reflect"
	"runtime/debug"
)

// Touch calls f with the span's bytes between Enter and Leave. The error is a [Fault] and says
// why f touched nothing, or not all: [TaggedSTag], the owner has withdrawn the memory; or
// [LocalDDP], there is nothing under it any more, as where a mapped file was cut or its
// disk is full. To touch such bytes in any other way ends the program, but see [Span.Recovered]. System calls may: they
// fail with EFAULT.
//
// f runs on the caller's goroutine and must not wait. A copy with Touch allocates nothing.
func (s *Span) Touch(f func(b []byte)) (err error) {
	if !s.Enter() {
		return TaggedSTag
	}
	defer s.Leave()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if _, lost := s.Recovered(recover()); lost {
			err = LocalDDP
		}
	}()
	f(s.Bytes)
	return nil
}

// Recovered takes what recover returned, and reports whether there is nothing under the span's bytes, from the one at
// at on. Any other panic goes on. A carrier that touches many spans calls debug.SetPanicOnFault once, and recovers
// once: of a message of 64 bytes, Touch itself would be a quarter of all work.
func (s *Span) Recovered(p any) (at int, lost bool) {
	if p == nil {
		return 0, false
	}
	if fault, ok := p.(interface{ Addr() uintptr }); ok {
		if at := fault.Addr() - reflect.ValueOf(s.Bytes).Pointer(); at < uintptr(len(s.Bytes)) {
			return int(at), true
		}
	}
	panic(p) // our own mistake
}

// Lost finds out where there is nothing under the span's bytes, after a system call has said that there is such a place.
func (s *Span) Lost() (at int, lost bool) {
	if !s.Enter() {
		return 0, false
	}
	defer s.Leave()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { at, lost = s.Recovered(recover()) }()
	Probe(s.Bytes)
	return 0, false
}

// Probe reads a byte of each page. The result means nothing, so the program may write at the same time: the race detector
// is not told of these reads, as it is not of those of writev.
//
//go:noinline
//go:norace
func Probe(b []byte) (sum byte) {
	if len(b) == 0 {
		return 0
	}
	for i := 0; i < len(b); i += pageSize {
		sum ^= b[i]
	}
	return sum ^ b[len(b)-1]
}

// pageSize is the least size of a page on Linux.
const pageSize = 4096

// LostError says that there is nothing under bytes any more that a carrier was to fill or to send: a mapped file was cut,
// or its disk is full. It is a [LocalDDP], too.
type LostError struct {
	Span Span
	// At is where in the span the system found nothing.
	At int

	// Received says that the bytes were to be filled by a segment. Header and Payload are the segment's.
	Received bool
	Header   Header
	Payload  int
	// Behind, of bytes to be sent, is how many messages the carrier has asked for after the one they are of.
	Behind int
}

// Error says what the system cannot do.
func (e *LostError) Error() string {
	return "the system cannot get at memory any more that was to be filled or sent"
}

// Unwrap returns the fault.
func (e *LostError) Unwrap() error { return LocalDDP }
