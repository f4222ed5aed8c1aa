package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
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

// TestAllHeld: a consumer that holds all its buffers is not handed the first one again.
func TestAllHeld(t *testing.T) {
	withStranger(t, &Options{Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		for i := range uint32(2) {
			s.frame(s.write(yes.out.Data+i*yes.out.Pitch, []byte("data"), yes.out.Flags+4*i, uint32(PackFlag(4, uint8(i), false))))
		}
		for i := range uint8(2) {
			if m, err := in.In.Recv(soon(t)); err != nil || m.Opcode != i {
				t.Fatal(m, err)
			}
		}
		if m, err := in.In.Recv(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("message %d, %v", m.Number, err)
		}
	})
}

// TestEndBeforeItIsRead: a peer that closes when all up to end of file has arrived
// closed in time, however much of it is not received yet.
func TestEndBeforeItIsRead(t *testing.T) {
	withStranger(t, &Options{Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		for i, f := range []Flag{PackFlag(4, 0, false), PackFlag(4, 0, false), PackFlag(0, 0, true)} {
			b := make([]byte, f.Length())
			s.frame(s.write(yes.out.Data+uint32(i)*yes.out.Pitch, b, yes.out.Flags+4*uint32(i), uint32(f)))
		}
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if in.Err() != nil {
			t.Errorf("closed too early: %v", in.Err())
		}
		n := 0
		for _, err := range in.In.Messages(soon(t)) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if n != 2 {
			t.Errorf("%d messages, want 2", n)
		}
	})
}

// TestRefusalKeepsTheConnection: who refuses is one of us, so that its connection stays
// for the next link; one who never wrote a letter may be of another kind, and is left.
func TestRefusalKeepsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		b.ep.AcceptAny(true)
		if _, err := dial(soon(t), a, 2, "nobody", nil); !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		if conns := a.ep.Conns(); len(conns) != 1 || conns[0].Err() != nil {
			t.Errorf("after a refusal: %v", conns)
		}
		s := n.stranger(9, a)
		if _, err := dial(soon(t), a, 9, "port", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		s.wait(time.Second)
		for _, c := range a.ep.Conns() {
			if c.Name().ID == s.id && c.Err() == nil {
				t.Error("a peer that never answered is not left")
			}
		}
	})
}
