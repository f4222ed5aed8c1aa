package dgrdma

import (
	"fmt"

	"github.com/dgrdma/dgrdma/frame"
)

// boundsError is ErrBounds with what lies where, and where the memory ends. Its text is
// made when it is asked for: a stranger causes one with each frame that is refused.
type boundsError struct {
	what   string
	addr   uint32
	n      int    // bytes
	padded int    // to so many; 0: they are not
	size   uint64 // of the memory
}

func (e *boundsError) Error() string {
	text := fmt.Sprintf("%v: %s: %d bytes", ErrBounds, e.what, e.n)
	n := e.n
	if e.padded > n {
		n = e.padded
		text += fmt.Sprintf(", padded to %d,", n)
	}
	text += fmt.Sprintf(" at %#x", e.addr)
	if e.size == 0 {
		return text + ", and there is no memory"
	}
	return text + fmt.Sprintf(" end at %#x, the memory at %#x", uint64(e.addr)+uint64(n), e.size)
}

func (e *boundsError) Unwrap() error { return ErrBounds }

// segment names one of a transaction that is posted, in errors.
func (t *terms) segment(i int) string {
	return fmt.Sprintf("segment %d of a post to peer %d", i, t.peer.ID)
}

// validate checks a transaction against the peer before anything is queued:
// peers that are not ours crash on bad addresses (D1-11, D2-8). How large the peer's
// memory is tells nothing of its other services.
func (t *terms) validate(x *Transaction, memory bool) error {
	p := &t.profile
	size := t.size.Load()
	if size == 0 || !memory {
		size = 1 << 32
	}
	messages := 0
	l := t.layoutOf(int(t.frameSize.Load()))
	for i := range x.Segments {
		s := &x.Segments[i]
		n := len(s.Bytes)
		if n == 0 {
			continue
		}
		if m := p.AddressMultiple; m > 1 && int(s.Addr)%m != 0 {
			return fmt.Errorf("%w: %s: address %#x is no multiple of %d", ErrAlignment, t.segment(i), s.Addr, p.AddressMultiple)
		}
		if padded := l.Padded(n); uint64(s.Addr)+uint64(padded) > size {
			return &boundsError{t.segment(i), s.Addr, n, padded, size}
		}
		messages += l.MostMessages(n)
	}
	if messages > frame.MaxMessages && x.messages(&l, l.Full) > frame.MaxMessages {
		return ErrTooLarge
	}
	if x.Completion.IsZero() {
		if p.NoSentinel {
			return ErrNoCompletion
		}
	} else if uint64(x.Completion.Addr())+4 > size {
		return &boundsError{what: fmt.Sprintf("completion word of a post to peer %d", t.peer.ID), addr: x.Completion.Addr(), n: 4, size: size}
	} else if p.NoHalfSentinel && x.Completion.Value() == frame.NoCompletion {
		return ErrNoCompletion
	}
	return nil
}
