package ddp

import (
	"reflect"
	"runtime/debug"
)

// Touch calls f with the span's bytes between Enter and Leave. The error is a [Fault] and says
// why f touched nothing, or not all: [TaggedSTag], the owner has withdrawn the memory; or
// [LocalDDP], there is nothing under it any more, as where a mapped file was cut or its
// disk is full. To touch such bytes in any other way ends the program. System calls may: they
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
		if p := recover(); p != nil {
			if !s.holds(p) {
				panic(p) // our own mistake
			}
			err = LocalDDP
		}
	}()
	f(s.Bytes)
	return nil
}

// holds says that a panic is the system's, over an address within the bytes.
func (s *Span) holds(p any) bool {
	fault, ok := p.(interface{ Addr() uintptr })
	return ok && fault.Addr()-reflect.ValueOf(s.Bytes).Pointer() < uintptr(len(s.Bytes))
}

// CopyIn copies b over the span's bytes from the one at at. They have room for it. The
// error is that of [Span.Touch].
func (s *Span) CopyIn(at int, b []byte) error {
	return s.Touch(func(to []byte) { copy(to[at:at+len(b)], b) })
}

// CopyOut copies the span's bytes from the one at at over b. There are as many. The error
// is that of [Span.Touch].
func (s *Span) CopyOut(b []byte, at int) error {
	return s.Touch(func(from []byte) { copy(b, from[at:at+len(b)]) })
}
