package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLettersAtWrongMoments checks that a letter that makes no sense, by its kind, number, attempt,
// version or time, changes nothing for the links that are there.
func TestLettersAtWrongMoments(t *testing.T) {
	open := letter{kind: letterOpen, directions: toListener, from: 77, attempt: 77, name: "port"}
	for _, c := range []struct {
		name string
		send func(s *fakePeer, local, other *Link)
		ends bool // the fake peer's own link
	}{
		{"accept of what was accepted", func(s *fakePeer, local, _ *Link) {
			s.letter(letter{kind: letterAccept, from: 5, to: local.number, attempt: 1, out: buffers(1, 1), back: buffers(1, 1)})
		}, false},
		{"refusal of what was accepted", func(s *fakePeer, local, _ *Link) {
			s.letter(letter{kind: letterRefuse, from: 5, to: local.number, attempt: 1, text: "no"})
		}, false},
		{"accept of another's", func(s *fakePeer, _, other *Link) {
			s.letter(letter{kind: letterAccept, from: 5, to: other.number, attempt: other.attempt, back: buffers(1, 1)})
		}, false},
		{"refusal of another's", func(s *fakePeer, _, other *Link) {
			s.letter(letter{kind: letterRefuse, to: other.number, attempt: other.attempt})
		}, false},
		{"close of another's", func(s *fakePeer, _, other *Link) {
			s.letter(letter{kind: letterClose, to: other.number, attempt: other.attempt, text: "mine now"})
			s.letter(letter{kind: letterClose, attempt: other.attempt})
		}, false},
		{"close under a wrong number", func(s *fakePeer, local, _ *Link) {
			s.letter(letter{kind: letterClose, from: 1, to: local.number + 1, attempt: 1})
		}, false},
		{"close of a wrong attempt", func(s *fakePeer, local, _ *Link) {
			s.letter(letter{kind: letterClose, from: 1, to: local.number, attempt: 2})
			s.letter(letter{kind: letterClose, attempt: 3})
		}, false},
		{"close twice", func(s *fakePeer, local, _ *Link) {
			s.letter(letter{kind: letterClose, from: 1, to: local.number, attempt: 1})
			s.letter(letter{kind: letterClose, from: 1, to: local.number, attempt: 1, text: "again"})
			s.letter(letter{kind: letterClose, attempt: 1})
		}, true},
		{"another version", func(s *fakePeer, local, _ *Link) {
			for _, k := range []letterKind{letterOpen, letterAccept, letterRefuse, letterClose, 0, 99} {
				var b [boxSize]byte
				l := letter{kind: k, from: 5, to: local.number, attempt: 1}
				n := l.put(b[:])
				b[2] = letterVersion + 1
				s.frame(s.mailed(b[:n], uint32(n)))
				s.wait(5 * time.Millisecond)
			}
		}, false},
		{"cut at every length", func(s *fakePeer, _, _ *Link) {
			var b [boxSize]byte
			n := open.put(b[:])
			for k := range n {
				s.frame(s.mailed(b[:n], uint32(k)))
				s.wait(time.Millisecond)
			}
		}, false},
		{"a length beyond the box", func(s *fakePeer, _, _ *Link) {
			for _, n := range []uint32{boxSize + 1, 1 << 31, 1<<32 - 1} {
				bell, _ := s.places()
				s.frame(s.word(bell, n))
				s.wait(time.Millisecond)
			}
		}, false},
		{"data outside of the box", func(s *fakePeer, _, other *Link) {
			bell, box := s.places()
			s.frame(s.write(uint32(other.memory.At), make([]byte, 8), bell, 8))
			s.frame(s.write(box+boxSize-4, make([]byte, 8), bell, 8))
			s.frame(s.write(0, make([]byte, 8), bell, 8))
			s.wait(time.Millisecond)
		}, false},
		{"many attempts of no port", func(s *fakePeer, _, _ *Link) {
			for i := range uint32(100) {
				s.letter(letter{kind: letterOpen, directions: toListener, from: i + 10, attempt: uint64(i) + 10, name: strings.Repeat("\x1b", MaxName)})
			}
		}, false},
		{"directions that are none", func(s *fakePeer, _, _ *Link) {
			for _, d := range []direction{0, 4, 8, 255} {
				s.letter(letter{kind: letterOpen, directions: d, from: 10 + uint32(d), attempt: 10 + uint64(d), name: "port", back: buffers(1, 1)})
			}
		}, false},
		{"a link without a number", func(s *fakePeer, _, _ *Link) {
			s.letter(letter{kind: letterOpen, directions: toListener, attempt: 10, name: "port"})
		}, false},
		{"more than there is memory", func(s *fakePeer, _, _ *Link) {
			for i, h := range []half{{Buffers: 1<<32 - 1, Size: 1<<32 - 1}, {Buffers: mostBuffers, Size: mostSize}} {
				s.letter(letter{kind: letterOpen, directions: toListener, from: 10 + uint32(i), attempt: 10 + uint64(i), name: "open", out: h})
			}
			s.wait(time.Millisecond)
		}, false},
		{"their words at another's addresses", func(s *fakePeer, _, other *Link) {
			m := other.memory
			for at := m.At; at < m.At+m.N; at += 4 {
				s.frame(s.word(uint32(at), uint32(PackFlag(0, 0, true))), s.write(uint32(at), put32(1), uint32(at), 1), s.write(uint32(at), put32(1), ^uint32(0), ^uint32(0)))
			}
			s.wait(10 * time.Millisecond)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, &Options{Directions: Both, Buffers: 4, Size: 64}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				h.serve(t, "open", nil)
				client := s.n.host(1, nil)
				both := &Options{Directions: Both, Buffers: 4, Size: 64}
				remote, err := dial(soon(t), client, 2, "port", both)
				if err != nil {
					t.Fatal(err)
				}
				other := <-made
				s.dial(1, "port", toListener|toDialer, half{Credit: 1 << 15}, buffers(4, 64))
				local := <-made
				before := h.Stats()
				c.send(s, local, other)
				s.mail()
				if ended := local.Err() != nil; ended != c.ends {
					t.Errorf("the fake peer's own link: %v", local.Err())
				}
				local.Close()
				s.letter(letter{kind: letterClose, from: 1, to: local.number, attempt: 1})
				if s := h.Stats(); len(s.Links) > len(before.Links) {
					t.Errorf("%d links, before %d", len(s.Links), len(before.Links))
				}
				for k := range 10 {
					if err := errors.Join(echo(soon(t), remote, other, k), echo(soon(t), other, remote, k)); err != nil {
						t.Fatalf("the honest client: %v", err)
					}
				}
				if err := remote.Close(); err != nil {
					t.Error(err)
				}
				other.Close() // which may have heard of that already
				s.wait(time.Second)
				for len(made) > 0 {
					(<-made).Close()
				}
				nothingLeft(t, h, client)
			})
		})
	}
}

// echo sends a message from one link to the other and checks it.
func echo(ctx context.Context, from, to *Link, k int) error {
	want := strings.Repeat(string(rune('a'+k)), k)
	if err := from.Out.Send(ctx, uint8(k), []byte(want)); err != nil {
		return err
	}
	m, err := to.In.Recv(ctx)
	if err != nil {
		return err
	}
	if string(m.Bytes) != want || m.Opcode != uint8(k) {
		return errors.New("another message")
	}
	return to.In.Release(m)
}

// TestAnswersThatAreNone checks that a dialer believes the first answer to its own letter, and no
// other one.
func TestAnswersThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 4)
		h := n.host(2, nil)
		s, liar := n.fakePeer(9, h), n.fakePeer(8, h)
		dialed := make(chan error, 1)
		var l *Link
		go func() {
			var err error
			l, err = dial(soon(t), h, uint16(s.id), "there", &Options{Directions: Both, Buffers: 2, Size: 8})
			dialed <- err
		}()
		var open letter
		for _, x := range s.mail() {
			if x.kind == letterOpen {
				open = x
			}
		}
		yes := letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, out: buffers(4, 8), back: half{Credit: 1 << 15}}
		liar.letter(yes)
		wrong := yes
		wrong.attempt++
		s.letter(wrong)
		wrong = letter{kind: letterRefuse, to: open.from, attempt: open.attempt + 1, text: "no"}
		s.letter(wrong)
		var b [boxSize]byte
		k := wrong.put(b[:])
		b[2] = letterVersion + 1 // the same in a version that this side does not know
		s.frame(s.mailed(b[:k], uint32(k)))
		liar.letter(letter{kind: letterRefuse, to: open.from, attempt: open.attempt, text: "no"})
		liar.letter(letter{kind: letterClose, to: open.from, attempt: open.attempt})
		if len(dialed) > 0 {
			t.Fatalf("an answer of another, or to another letter, was taken: %v", <-dialed)
		}
		s.letter(yes)
		again := yes
		again.out = buffers(mostBuffers, 1)
		again.from = 3
		s.letter(again)
		if err := <-dialed; err != nil {
			t.Fatal(err)
		}
		if n, size := l.Out.Buffers(); n != 4 || size != 8 {
			t.Errorf("%d buffers of %d", n, size)
		}
		l.Abort(soon(t), "enough")
		for _, m := range s.mail() {
			if m.kind == letterClose && m.from != 0 && m.to != 2 {
				t.Errorf("the link is closed as number %d, which another letter said", m.to)
			}
		}
		s.letter(letter{kind: letterClose, from: 2, to: open.from, attempt: open.attempt})
		s.wait(time.Second)
		nothingLeft(t, h)
	})
}
