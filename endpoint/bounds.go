package endpoint

import "fmt"

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
