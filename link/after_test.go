package link

import (
	"testing"
	"time"
)

// TestMemoryWaitsForTheBatch: the memory of a link that ends in the midst of a frame is
// nobody else's before the end of the batch, because data that was admitted to it may
// still be placed.
func TestMemoryWaitsForTheBatch(t *testing.T) {
	withStranger(t, &Options{Buffers: 2, Size: 64}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		var during uint64
		handled := h.serve(t, "handled", &Options{Buffers: 2, Size: 8, Handle: func(*Link, Message) { during = h.Stats().Free }})
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		other := s.dial(2, "handled", toListener, half{Credit: 1 << 15}, half{})
		ends := <-made
		<-handled
		ends.Close() // the memory waits for the peer to say the same
		s.mail()
		before := h.Stats().Free
		var b [boxSize]byte
		l := letter{kind: letterClose, from: 1, to: yes.from, attempt: 1}
		n := l.put(b[:])
		flag := uint32(PackFlag(4, 0, false))
		s.frame(s.write(letterBox, b[:n], letterBell, uint32(n)),
			s.write(other.out.Data, []byte("data"), other.out.Flags, flag),
			s.write(yes.out.Data, []byte("data"), yes.out.Flags, flag))
		s.wait(time.Millisecond)
		if after := h.Stats().Free; during != before || after <= before {
			t.Errorf("%d bytes were free before a link's end, %d in the same frame, %d after the batch", before, during, after)
		}
	})
}
