package rdmap

// scatter finds places in the buffers of one message, which are more than one: those of a Read, or of a receive. A message comes
// from its beginning to its end, so that a search goes on where the last one ended.
type scatter struct {
	at     int    // the buffer that was found last: 0 is the first, i is more[i-1]
	before uint64 // how many bytes the buffers before it have
}

// find returns n bytes from the offset on, or the first of them, as many as are in one buffer. The buffers have these bytes.
func (s *scatter) find(first []byte, more [][]byte, off uint64, n int) []byte {
	if n == 0 {
		return nil
	}
	if off < s.before {
		*s = scatter{} // of a carrier that places in any order
	}
	for {
		b := first
		if s.at > 0 {
			b = more[s.at-1]
		}
		if i := off - s.before; i < uint64(len(b)) {
			n = min(n, len(b)-int(i))
			return b[i : int(i)+n : int(i)+n]
		}
		s.before += uint64(len(b))
		s.at++
	}
}

// total is how many bytes buffers have.
func total(first []byte, more [][]byte) uint64 {
	n := uint64(len(first))
	for _, b := range more {
		n += uint64(len(b))
	}
	return n
}
