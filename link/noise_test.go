package link

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestNoAnswerToNoise: a letter that cannot be read is answered if it asks for a link
// and tells its number, as one of another version does. No other is: two hosts that
// answer what they do not understand would never stop.
func TestNoAnswerToNoise(t *testing.T) {
	withStranger(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		send := func(b []byte, length uint32) {
			s.frame(s.write(letterBox, b, letterBell, length))
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
		send(b, uint32(len(b)))
		got := s.mail()
		if len(got) != 1 || got[0].kind != letterRefuse || got[0].to != 5 || got[0].attempt != 6 || !strings.Contains(got[0].text, "version 2 ") {
			t.Errorf("another version: %+v", got)
		}
	})
}

// TestManyUnderWay: links bound what they post, each for itself; the connection's queue
// has room for all of them.
func TestManyUnderWay(t *testing.T) {
	withStranger(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
		const links = 5 // of more messages together than an endpoint's queue holds if nothing is said
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
