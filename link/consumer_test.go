package link

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fill has the fake peer fill a buffer of a link with a message.
func (s *fakePeer) fill(in *half, i uint32, f Flag) {
	s.frame(s.write(in.Data+i*in.Pitch, make([]byte, f.Length()), in.Flags+4*i, uint32(f)))
}

// TestKindsOfEnds checks that end of file with a message, or with an opcode, is a message, and io.EOF
// comes after it. An end of file without either is io.EOF. A peer that closes then closed in time, and
// after the end a message has no buffer to give back.
func TestKindsOfEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		end     Flag
		message bool
	}{
		{"bare", PackFlag(0, 0, true), false},
		{"with bytes", PackFlag(1, 0, true), true},
		{"with an opcode", PackFlag(0, 5, true), true},
		{"with both", PackFlag(1, 5, true), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
				in := (<-made).In
				s.fill(&yes.out, 0, PackFlag(1, 0, false))
				m, err := in.Recv(soon(t))
				if err != nil {
					t.Fatal(err)
				}
				in.Release(m)
				s.wait(20 * time.Millisecond)
				s.fill(&yes.out, 0, c.end)
				m, err = in.Recv(soon(t))
				switch {
				case !c.message && err == io.EOF:
				case !c.message || err != nil || !m.EOF || len(m.Bytes) != c.end.Length() || m.Opcode != c.end.Opcode():
					t.Errorf("%+v, %v", m, err)
				default:
					if err := in.Release(m); err != nil {
						t.Error(err)
					}
				}
				if m, err := in.Recv(soon(t)); err != io.EOF {
					t.Errorf("after the end: %+v, %v", m, err)
				}
				s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
				if err := in.link.Err(); err != nil {
					t.Errorf("the peer closed too early: %v", err)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.count != 1 {
					t.Errorf("%d words of free buffers came, want that of the first message", s.count)
				}
			})
		})
	}
}

// TestHandlerEnds checks that a handler gets nothing after end of file, and that a Recv that waits for
// the end fails when the context is done, or the link ends.
func TestHandlerEnds(t *testing.T) {
	var got []Message
	o := &Options{Buffers: 4, Size: 8, Handle: func(_ *Link, m Message) { got = append(got, m) }}
	withFakePeer(t, o, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		s.fill(&yes.out, 0, PackFlag(1, 7, false))
		s.fill(&yes.out, 2, PackFlag(2, 8, false))
		if _, err := in.In.Recv(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before the end: %v", err)
		}
		s.fill(&yes.out, 1, PackFlag(0, 0, true))
		for range 2 {
			if _, err := in.In.Recv(soon(t)); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
		}
		if len(got) != 2 || got[0].Opcode != 7 || !got[1].EOF {
			t.Errorf("%+v", got)
		}
	})
	withFakePeer(t, o, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if _, err := in.In.Recv(soon(t)); !errors.Is(err, ErrPeerClosed) {
			t.Errorf("without the end: %v", err)
		}
	})
}

// TestMessagesAreReleasedOnce checks that a loop over messages ends where its body does, with the
// message released. A message that the body released is an error, unless the loop has ended.
func TestMessagesAreReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, in := pair(t, newNet(t, 4), nil, &Options{Buffers: 8, Size: 8})
		if err := in.In.Release(Message{}); !errors.Is(err, ErrOutOfTurn) {
			t.Errorf("the zero Message was released: %v", err)
		}
		for range 5 {
			if err := out.Out.Send(soon(t), 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // all five have come
		next := uint64(0)
		expect := func(m Message, err error) {
			t.Helper()
			if err != nil || m.Number != next {
				t.Fatalf("message %d, %v; want %d", m.Number, err, next)
			}
			next++
		}
		for m, err := range in.In.Messages(soon(t)) {
			if expect(m, err); next == 2 {
				break
			}
		}
		for m, err := range in.In.Messages(soon(t)) {
			expect(m, err)
			in.In.Release(m)
			break
		}
		var last error
		for m, err := range in.In.Messages(soon(t)) {
			if last != nil {
				t.Fatalf("%+v, %v after %v", m, err, last)
			}
			if last = err; err == nil {
				expect(m, err)
				in.In.Release(m)
			}
		}
		if !errors.Is(last, ErrOutOfTurn) || next != 4 {
			t.Errorf("after %d messages: %v", next, last)
		}
		if held := in.Stats().In; held.Held != 0 || held.Waiting != 1 {
			t.Errorf("%+v", *held)
		}
	})
}

// offered returns a link for a peer of another kind whose n buffers of 8 bytes are full.
func offered(t *testing.T, h *Host, n uint32, last Flag) *Consumer {
	l, _, err := h.Offer(h.ep.Conns()[0], 4, &Options{Buffers: int(n), Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n - 1 {
		l.In.takeWord(l.In.first, int(i), uint32(PackFlag(1, 1, false)))
	}
	l.In.takeWord(l.In.first, int(n-1), uint32(last))
	return l.In
}

// TestReleasedByTwo checks that of two goroutines that give back a message at the same time one does,
// and the other gets an error.
func TestReleasedByTwo(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		const n = 20000
		c := offered(t, h, n, PackFlag(1, 1, false))
		var round, released, refused atomic.Int64
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				for k := range int64(n) {
					round.Add(1)
					for round.Load() < 2*k+2 { // the other goroutine is here too
						runtime.Gosched()
					}
					switch err := c.Release(Message{Number: uint64(k), Bytes: []byte{}}); {
					case err == nil:
						released.Add(1)
					case errors.Is(err, ErrOutOfTurn):
						refused.Add(1)
					}
				}
			})
		}
		both.Wait()
		if released.Load() != n || refused.Load() != n || c.freed.Load() != n {
			t.Errorf("%d messages, %d times released and %d times refused", n, released.Load(), refused.Load())
		}
	})
}

// TestHasAll holds hasAll against what it says, for all that four buffers can have and for whatever of
// it was received.
func TestHasAll(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		const n = 4
		flags := [3]Flag{0, PackFlag(0, 0, false), PackFlag(0, 0, true)}
		for pattern := range 3 * 3 * 3 * 3 {
			l, _, err := h.Offer(h.ep.Conns()[0], 4, &Options{Buffers: n, Size: 8})
			if err != nil {
				t.Fatal(err)
			}
			c := l.In
			var has []Flag
			for i, p := 0, pattern; i < n; i, p = i+1, p/3 {
				has = append(has, flags[p%3])
				if has[i] != 0 {
					c.takeWord(c.first, i, uint32(has[i]))
				}
			}
			want := false
			for _, f := range has {
				if f == 0 {
					break
				}
				want = want || f.EOF()
			}
			for received := 0; ; received++ {
				if c.hasAll() != want {
					t.Errorf("%v, of which %d received: ended is %v", has, received, !want)
				}
				if !c.isReady() || c.endReceived.Load() {
					break
				}
				if m := c.get(); received%2 == 0 {
					c.Release(m)
				}
			}
		}
	})
}

// TestHasAllDuringRecv checks that all up to end of file has arrived also while another goroutine
// receives and gives back what hasAll looks at.
func TestHasAllDuringRecv(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		for range 30 {
			const n = 300
			c := offered(t, h, n, PackFlag(0, 1, true))
			var received sync.WaitGroup
			var over atomic.Bool
			received.Go(func() {
				for m, err := range c.Messages(t.Context()) {
					if err != nil {
						t.Errorf("message %d: %v", m.Number, err)
					}
				}
				over.Store(true)
			})
			for looks := 0; !over.Load(); looks++ {
				if !c.hasAll() {
					t.Fatalf("look %d: the end is not seen", looks)
				}
			}
			received.Wait()
			if !c.hasAll() {
				t.Fatal("the end is not seen when it was received")
			}
			c.link.Close()
		}
	})
}

// TestLoopKeepsItsMemory checks that no other link gets the memory of a message while a loop over
// Messages is at it, though the link is closed, and that it is free when the loop goes on (F15).
func TestLoopKeepsItsMemory(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 4, Size: 64}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		l := <-made
		s.fill(&yes.out, 0, PackFlag(1, 0, false))
		s.fill(&yes.out, 1, PackFlag(1, 0, false))
		var last error
		loops := 0
		for _, err := range l.In.Messages(soon(t)) {
			if loops++; err != nil {
				last = err
				break
			}
			if loops == 1 {
				l.Close()
				synctest.Wait()
				if s := h.Stats(); s.Free == s.Memory {
					t.Error("the memory is free for others within the loop")
				}
			}
		}
		synctest.Wait()
		if s := h.Stats(); loops != 2 || !errors.Is(last, ErrClosed) || s.Free != s.Memory {
			t.Errorf("%d loops, the last with %v, then %d bytes are free of %d", loops, last, s.Free, s.Memory)
		}
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
	})
}

// TestTwoEnds checks that what comes after end of file is not received, whether data or another end.
func TestTwoEnds(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		for i, f := range []Flag{PackFlag(0, 0, true), PackFlag(1, 0, false), PackFlag(0, 0, true)} {
			b := make([]byte, f.Length())
			s.frame(s.write(yes.out.Data+uint32(i)*yes.out.Pitch, b, yes.out.Flags+4*uint32(i), uint32(f)))
		}
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		for range 2 {
			if m, err := in.In.Recv(soon(t)); err != io.EOF {
				t.Errorf("after the end: %q, %v", m.Bytes, err)
			}
		}
		in.Close()
		s.wait(time.Second)
		nothingLeft(t, h)
	})
}

// TestEndWithoutTheRest checks that a peer that closes after end of file came, but not all before it,
// closed too early: no call waits for the rest.
func TestEndWithoutTheRest(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 4, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		s.frame(s.write(yes.out.Data, []byte("x"), yes.out.Flags, uint32(PackFlag(1, 0, false))))
		s.frame(s.word(yes.out.Flags+8, uint32(PackFlag(0, 0, true))))
		s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
		if m, err := in.In.Recv(soon(t)); err != nil || string(m.Bytes) != "x" {
			t.Error(m, err)
		}
		if _, err := in.In.Recv(soon(t)); !errors.Is(err, ErrPeerClosed) {
			t.Errorf("a message that never comes: %v", err)
		}
	})
}
