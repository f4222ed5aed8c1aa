package link

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoAnswerToNoise checks that a letter that cannot be read is answered if it asks for a link and
// tells its number, as one of another version does. No other letter is: two hosts that answer what
// they do not understand would never stop.
func TestNoAnswerToNoise(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		send := func(b []byte, length uint32) {
			s.frame(s.mailed(b, length))
			s.wait(time.Millisecond)
		}
		encoded := func(k letterKind) []byte {
			var b [boxSize]byte
			l := letter{kind: k, directions: toListener, from: 5, attempt: 6, name: "port"}
			return b[:l.put(b[:])]
		}
		for k := range letterKind(10) {
			b := encoded(k)
			if k != letterOpen {
				b[2]++ // the version
				send(b, uint32(len(b)))
				b[2]--
				send(b, uint32(len(b))-1)
			}
			b[0]++ // no letter at all
			send(b, uint32(len(b)))
			send(b, boxSize+1)
		}
		if got := s.mail(); len(got) != 0 {
			t.Errorf("%d answers, the first %+v", len(got), got[0])
		}
		b := encoded(letterOpen)
		b[2]++
		n := len(b)
		b = b[:boxSize] // the rest is that version's
		for _, length := range []int{letterHeader, n, boxSize} {
			send(b[:length], uint32(length))
			got := s.mail()
			if len(got) != 1 || got[0].kind != letterRefuse || got[0].to != 5 || got[0].attempt != 6 || !strings.Contains(got[0].text, "version 3 ") {
				t.Errorf("%d bytes of another version: %+v", length, got)
			}
		}
		p := h.peerOf(h.ep.Conns()[0])
		if p.replies != 0 || h.replies.Load() != 0 {
			t.Errorf("%d answers of this peer's wait, and %d of all", p.replies, h.replies.Load())
		}
	})
}

// TestAnswerOfAnotherVersion checks that a refusal of another version ends a dial, and says so. No
// other letter of that version does.
func TestAnswerOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 4)
		h := n.host(2, nil)
		s := n.fakePeer(9, h)
		dialed := make(chan error, 1)
		go func() {
			_, err := dial(soon(t), h, uint16(s.id), "there", nil)
			dialed <- err
		}()
		open := s.mail()[0]
		for _, k := range []letterKind{letterAccept, letterClose, 0, letterRefuse} {
			if len(dialed) > 0 {
				t.Fatalf("before kind %d: %v", k, <-dialed)
			}
			var b [boxSize]byte
			l := letter{kind: k, from: 3, to: open.from, attempt: open.attempt, out: buffers(4, 8)}
			size := l.put(b[:])
			b[2]++
			s.frame(s.mailed(b[:size], uint32(size)))
			s.wait(5 * time.Millisecond)
		}
		if err := <-dialed; !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
	})
}

// TestLetterInPieces checks that a letter is read when its last message came, also if one of them has
// no data.
func TestLetterInPieces(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		var b [boxSize]byte
		l := letter{kind: letterOpen, directions: toListener, from: 5, attempt: 6, name: "port"}
		n := l.put(b[:])
		bell, box := s.places()
		s.frame(s.message(0, 3, 1, box, b[:20], bell, uint32(n)))
		s.frame(s.message(0, 3, 2, box+20, b[20:n], bell, uint32(n)))
		if got := s.mail(); len(got) != 0 {
			t.Errorf("answered too early: %+v", got)
		}
		s.frame(s.message(0, 3, 3, 0, nil, bell, uint32(n)))
		if got := s.mail(); len(got) != 1 || got[0].kind != letterAccept {
			t.Errorf("%+v", got)
		}
	})
}

// TestEndIsAlwaysTold checks that the peer is told of the end of a link however many answers wait,
// which may be left out.
func TestEndIsAlwaysTold(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 2, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		s.dial(1, "port", toListener, half{Credit: 1 << 15}, half{})
		in := <-made
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		m := in.peer.channel
		for i := uint32(0); i < mostReplies && m.Waiting() < mostReplies/2; i++ {
			s.frame(s.refused(i + 2))
			if i%100 == 0 {
				s.wait(10 * time.Microsecond)
			}
		}
		s.wait(10 * time.Microsecond)
		before := m.Waiting()
		if before < mostReplies/2 {
			t.Fatalf("%d letters wait", before)
		}
		in.Close()
		if got := m.Waiting(); got != before+1 {
			t.Errorf("%d letters wait, and %d after a link's end", before, got)
		}
	})
}

// refused asks for a link to a port that is not there.
func (s *fakePeer) refused(from uint32) part {
	var b [boxSize]byte
	l := letter{kind: letterOpen, directions: toListener, from: from, attempt: uint64(from), name: "none"}
	return s.mailed(b[:l.put(b[:])], uint32(l.put(b[:])))
}

// TestWordsOfAttach checks that a consumer of another kind gives any of its buffers back by a word, or
// by the same as data (quirk F15), and writes nowhere else.
func TestWordsOfAttach(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(s *fakePeer, at uint32)
		free  int // of 4 buffers, 2 of them sent
	}{
		{"word", func(s *fakePeer, at uint32) { s.frame(s.word(at, 1)) }, 3},
		{"word as data", func(s *fakePeer, at uint32) { s.frame(s.write(at, put32(1), ^uint32(0), ^uint32(0))) }, 3},
		{"both words as data", func(s *fakePeer, at uint32) {
			for i := range uint32(2) {
				s.frame(s.write(at+4*i, put32(1), ^uint32(0), ^uint32(0)))
			}
		}, 4},
		{"data across words", func(s *fakePeer, at uint32) { s.frame(s.write(at, put32(1, 1), ^uint32(0), ^uint32(0))) }, 2},
		{"data between words", func(s *fakePeer, at uint32) { s.frame(s.write(at+2, put32(1), ^uint32(0), ^uint32(0))) }, 2},
		{"data after the words", func(s *fakePeer, at uint32) { s.frame(s.write(at+16, put32(1), ^uint32(0), ^uint32(0))) }, 2},
		{"words of all, sent or not", func(s *fakePeer, at uint32) {
			for _, i := range []uint32{2, 3, 0, 1} {
				s.frame(s.word(at+4*i, 1))
			}
		}, 4},
		{"a word that says no", func(s *fakePeer, at uint32) { s.frame(s.write(at, put32(2), ^uint32(0), ^uint32(0)), s.word(at, 0)) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
				out, flags, err := h.Attach(h.ep.Conns()[0], Buffers{N: 4, Size: 8, Data: 1 << 20, Pitch: 8, Flags: 1 << 16, FlagPitch: 4}, nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := out.Out.Send(soon(t), 0, []byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				s.wait(20 * time.Millisecond)
				c.write(s, flags.Addr)
				s.wait(20 * time.Millisecond)
				if got := out.Stats().Out.Free; got != c.free || out.Err() != nil {
					t.Errorf("%d buffers are free, want %d; %v", got, c.free, out.Err())
				}
				if _, ok := out.Out.TryAcquire(); !ok {
					t.Error("none can be acquired")
				}
			})
		})
	}
}

// TestManyUnderWay checks that each link bounds what it posts: the connection's queue has room for all
// of them.
func TestManyUnderWay(t *testing.T) {
	withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		const links = 5 // of more messages together than an endpoint's queue holds by default
		var out []*Link
		for i := range uint32(links) {
			s.dial(i+1, "port", toDialer, half{}, buffers(mostBuffers, 1))
			out = append(out, <-made)
		}
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		for i, l := range out {
			k := 0
			for ; k <= mostUnderWay; k++ {
				b, ok := l.Out.TryAcquire()
				if !ok {
					break
				}
				if err := l.Out.Commit(b, 0, 1); err != nil {
					t.Fatalf("message %d of link %d: %v", k, i, err)
				}
			}
			if k != mostUnderWay {
				t.Errorf("link %d took %d messages, want %d", i, k, mostUnderWay)
			}
		}
		for _, l := range out {
			if err := l.Err(); err != nil && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}
