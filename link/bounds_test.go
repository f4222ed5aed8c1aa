package link

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLetterCostsLittle checks that what a peer says of its memory makes a host allocate nothing
// (attack A14, SECURITY.md).
func TestLetterCostsLittle(t *testing.T) {
	withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		const letters = 50
		got := allocated(func() {
			for i := range uint32(letters) {
				if yes := s.dial(i+1, "port", toDialer, half{}, buffers(mostBuffers, 1)); yes.kind != letterAccept {
					t.Fatalf("%+v", yes)
				}
			}
		})
		if got/letters > 64<<10 {
			t.Errorf("a letter made the host and the fake peer allocate %d bytes", got/letters)
		}
		if free := h.Stats(); free.Memory-free.Free < letters*leastMemory {
			t.Errorf("%d links take %d bytes of the host's memory", letters, free.Memory-free.Free)
		}
	})
}

// TestSenderIsBounded checks that a peer that offers many buffers and takes nothing makes its sender
// wait, and keep what is documented (attack A14, SECURITY.md).
func TestSenderIsBounded(t *testing.T) {
	for _, c := range []struct {
		name          string
		buffers, size uint32
	}{{"many", mostBuffers, 1}, {"long", 1 << 10, 1 << 20}} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				s.dial(1, "port", toDialer, half{}, buffers(c.buffers, c.size))
				out := (<-made).Out
				s.mu.Lock()
				s.mute = true
				s.mu.Unlock()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var err error
				message := make([]byte, c.size)
				got := allocated(func() {
					for err == nil {
						err = out.Send(ctx, 0, message)
					}
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				st := out.stats()
				if st.Unacknowledged > mostUnderWay || int64(st.Bytes) > out.maxUnbuilt()+10<<20 { // and frames in flight
					t.Errorf("%d messages of %d bytes in all are under way", st.Unacknowledged, st.Bytes)
				}
				if got > 80<<20 {
					t.Errorf("%d bytes were allocated", got)
				}
				// Once the peer takes messages, all goes on.
				s.mu.Lock()
				s.mute = false
				s.mu.Unlock()
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 100 {
					if st := out.stats(); st.Filled == int(c.buffers) {
						s.frame(s.word(uint32(out.words.at), uint32(st.Messages)))
						s.wait(time.Millisecond)
					}
					if err := out.Send(ctx, 0, message); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// TestRingGrows checks that as many messages as are asked for get a slot, each its own, whatever was
// acquired, committed and acknowledged when the ring had to grow.
func TestRingGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, &Options{Buffers: 100, Size: 8})
		go func() {
			for m, err := range in.In.Messages(t.Context()) {
				if err != nil {
					t.Error(err)
				} else if len(m.Bytes) > 0 && int(m.Bytes[0]) != int(m.Number%251) {
					t.Errorf("message %d is %d", m.Number, m.Bytes[0])
				}
			}
		}()
		k := 0
		for _, burst := range []int{1, 3, 15, 16, 17, 40, 75, 2, 75, 75} {
			var held []Buffer
			for range burst {
				b, err := out.Out.Acquire(soon(t))
				if err != nil {
					t.Fatalf("after %d of %d: %v", len(held), burst, err)
				}
				held = append(held, b)
			}
			for _, b := range held {
				b.Bytes[0] = byte(k % 251)
				if err := out.Out.Commit(b, 0, 8); err != nil {
					t.Fatal(err)
				}
				k++
			}
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOpenFlood checks that a peer that asks for links faster than they are accepted takes no more
// than its share of the places. It does not keep others out, and is answered.
func TestOpenFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 4)
		h, honest := n.host(2, nil), n.host(1, nil)
		p, err := h.Listen("port", &Options{Buffers: 2, Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		s := n.fakePeer(9, h)
		const asked = backlog + 100
		for i := range uint32(asked) {
			var b [boxSize]byte
			l := letter{kind: letterOpen, directions: toListener, from: i + 1, attempt: uint64(i), name: "port", private: make([]byte, MaxPrivate), text: strings.Repeat("x", maxText)}
			k := l.put(b[:])
			s.frame(s.mailed(b[:k], uint32(k)))
			if i%100 == 0 {
				s.wait(time.Millisecond)
			}
		}
		s.wait(time.Second)
		if got := h.Stats().Ports[0].Waiting; got != backlog/2 {
			t.Errorf("%d of %d wait to be accepted, want half of %d", got, asked, backlog)
		}
		refused := 0
		for _, l := range s.mail() {
			if l.kind == letterRefuse {
				refused++
			}
		}
		if n := h.Stats().Full.Backlog; refused != asked-backlog/2 || n != asked-backlog/2 {
			t.Errorf("%d were refused, and %d counted", refused, n)
		}
		accepted := make(chan *Link, asked)
		go func() {
			for {
				l, err := p.Accept(t.Context())
				if err != nil {
					return
				}
				accepted <- l
			}
		}()
		if _, err := dial(soon(t), honest, 2, "port", nil); err != nil {
			t.Errorf("an honest client: %v", err)
		}
		s.wait(time.Second)
		if got := len(accepted); got != backlog/2+1 {
			t.Errorf("%d links were accepted", got)
		}
		p.Close()
	})
}

// TestRepliesAreBounded checks that a peer that reads no answers gets no more than its share of the
// places for them, whatever it asks.
func TestRepliesAreBounded(t *testing.T) {
	for _, kind := range []letterKind{letterOpen, letterAccept} { // one is refused, the other is told that its link is over
		withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
			s.mu.Lock()
			s.mute = true
			s.mu.Unlock()
			for i := range uint32(mostReplies) {
				var b [boxSize]byte
				l := letter{kind: kind, directions: toListener, from: i + 1, attempt: uint64(i), name: "none"}
				k := l.put(b[:])
				s.frame(s.mailed(b[:k], uint32(k)))
				if i%100 == 0 {
					s.wait(10 * time.Microsecond)
				}
			}
			s.wait(time.Millisecond)
			if n := h.Stats().Full.Letters; n != mostReplies/2 {
				t.Errorf("letters of kind %d: %d are counted that are not answered, want half of %d", kind, n, mostReplies)
			}
			if got := h.replies.Load(); got != mostReplies/2 {
				t.Errorf("letters of kind %d: %d answers wait, want half of %d", kind, got, mostReplies)
			}
			s.wait(20 * time.Second) // the peer is given up
			if got := h.replies.Load(); got != 0 {
				t.Errorf("letters of kind %d: %d answers wait for a dead peer", kind, got)
			}
		})
	}
}

// TestMostLinks checks that a peer has so many links and no more, under whatever numbers.
func TestMostLinks(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		for i := range uint32(mostLinks) {
			if l := s.dial(i+1, "port", toListener, half{}, half{}); l.kind != letterAccept {
				t.Fatalf("link %d: %s", i, l.text)
			}
		}
		if l := s.dial(mostLinks+1, "port", toListener, half{}, half{}); l.kind != letterRefuse || !strings.Contains(l.text, "4096 links") {
			t.Errorf("one more: %+v", l)
		}
		if n := h.Stats().Full.Links; n != 1 {
			t.Errorf("%d are counted as too many, want 1", n)
		}
		// An attempt has one link, and an attempt without a number has none.
		if l := s.dial(1, "port", toListener, half{}, half{}); l.kind != letterRefuse {
			t.Errorf("an attempt again: %+v", l)
		}
		s.letter(letter{kind: letterOpen, directions: toListener, attempt: 1 << 40, name: "port"})
		if got := h.Stats(); len(got.Links) != mostLinks {
			t.Errorf("%d links", len(got.Links))
		}
		// Other peers have their links, and one that ends makes room.
		if _, err := dial(soon(t), s.n.host(1, nil), 2, "port", nil); err != nil {
			t.Error(err)
		}
		(<-made).Close()
		s.letter(letter{kind: letterClose, attempt: 1})
		if l := s.dial(1, "port", toListener, half{}, half{}); l.kind != letterAccept {
			t.Errorf("after one ended: %+v", l)
		}
	})
}
