package link

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestSecondAnswerChangesNothing checks that a peer cannot change the shape of a link that was made:
// neither a listener that gives no number for it, nor a dialer that accepts what it asked for (attack
// A19, SECURITY.md).
func TestSecondAnswerChangesNothing(t *testing.T) {
	use := func(t *testing.T, l *Link) {
		t.Helper()
		for range 3 {
			if err := l.Out.Send(soon(t), 0, make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Out.Flush(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	unchanged := func(t *testing.T, l *Link) {
		t.Helper()
		if err := l.Out.Send(soon(t), 0, make([]byte, 1000)); !errors.Is(err, ErrTooLong) {
			t.Errorf("a message longer than the buffers agreed on: %v", err)
		}
	}
	t.Run("listener", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, 4)
			h := n.host(2, nil)
			s := n.fakePeer(9, h)
			var l *Link
			var err error
			go func() { l, err = dial(soon(t), h, uint16(s.id), "there", nil) }()
			for _, open := range s.mail() {
				yes := letter{kind: letterAccept, to: open.from, attempt: open.attempt, out: buffers(4, 8)}
				s.letter(yes)
				if l != nil {
					use(t, l)
				}
				yes.out = buffers(4, 1000)
				s.letter(yes)
			}
			switch {
			case l != nil:
				unchanged(t, l)
			case !errors.Is(err, ErrProtocol):
				t.Errorf("a link without a number: %v", err)
			}
			s.wait(time.Second)
		})
	})
	t.Run("dialer", func(t *testing.T) {
		withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
			yes := s.dial(1, "port", toDialer, half{}, buffers(4, 8))
			l := <-made
			use(t, l)
			s.letter(letter{kind: letterAccept, from: 5, to: yes.from, attempt: 1, out: buffers(4, 1000)})
			unchanged(t, l)
			s.letter(letter{kind: letterRefuse, to: yes.from, attempt: 1})
			s.letter(letter{kind: letterClose, from: 1, to: yes.from, attempt: 1})
			if err := l.Err(); !errors.Is(err, ErrPeerClosed) {
				t.Errorf("after the end: %v", err)
			}
		})
	})
}

// TestNothingIsReadAfterClose checks that the rest of a message is not read from the memory once the
// link is closed, when the memory may hold what another peer sends. No other link gets the memory
// while a reader copies from it (attack A7, SECURITY.md).
func TestNothingIsReadAfterClose(t *testing.T) {
	secret, message := bytes.Repeat([]byte("password"), 12), bytes.Repeat([]byte("ordinary"), 12)
	withFakePeer(t, &Options{Buffers: 1, Size: 96}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		client := s.n.host(1, nil)
		number := uint32(0)
		// next begins to read a message. It returns a function that closes the link and lets another peer have
		// the memory.
		next := func() (in *Link, closed func()) {
			out, err := dial(soon(t), client, 2, "port", nil)
			if err != nil {
				t.Fatal(err)
			}
			in = <-made
			if err := out.Out.Send(soon(t), 0, message); err != nil {
				t.Fatal(err)
			}
			if k, err := in.In.Read(make([]byte, 32)); k != 32 || err != nil {
				t.Fatal(k, err)
			}
			return in, func() {
				in.Close()
				out.Close()
				s.wait(100 * time.Millisecond)
				number++
				yes := s.dial(number, "port", toListener, half{Credit: 1 << 15}, half{})
				s.frame(s.write(yes.out.Data, secret, yes.out.Flags, uint32(PackFlag(96, 0, false))))
				s.wait(time.Millisecond)
				<-made
			}
		}
		in, closed := next()
		closed()
		b := make([]byte, 96)
		if k, err := in.In.Read(b); k != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("%q, %v after Close", b[:k], err)
		}
		if k, err := in.In.WriteTo(new(bytes.Buffer)); k != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("%d bytes, %v after Close", k, err)
		}
		in, closed = next()
		var during []byte
		in.In.WriteTo(writer(func(b []byte) (int, error) {
			closed()
			during = slices.Clone(b)
			return len(b), nil
		}))
		if !bytes.Equal(during, message[32:]) {
			t.Errorf("%q while it was written", during)
		}
		s.wait(time.Second)
		for _, l := range h.Stats().Links {
			if l.Number == in.number {
				t.Error("the link is not over when it was written")
			}
		}
	})
}

// writer is a function that writes.
type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestLettersOfEndsAreBounded checks that a peer that makes links and ends them, and takes no letter,
// makes the host keep no more letters than those of as many links as it may have (attack A14,
// SECURITY.md).
func TestLettersOfEndsAreBounded(t *testing.T) {
	withFakePeer(t, &Options{Buffers: 1, Size: 8}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		put := func(l letter) {
			var b [boxSize]byte
			k := l.put(b[:])
			s.frame(s.mailed(b[:k], uint32(k)))
		}
		var p *peer
		for _, c := range h.ep.Conns() {
			p = h.peerOf(c)
		}
		for i := range uint32(5 * mostLinks) {
			put(letter{kind: letterOpen, directions: toListener, from: i + 1, attempt: uint64(i), name: "port"})
			s.wait(10 * time.Microsecond)
			if len(made) > 0 {
				(<-made).Close()
			}
			put(letter{kind: letterClose, from: i + 1, attempt: uint64(i)})
		}
		s.wait(time.Millisecond)
		waiting := p.channel.Waiting()
		if most := 2*mostLinks + mostReplies; waiting > most {
			t.Errorf("%d letters wait for a peer that takes none, want at most %d", waiting, most)
		}
	})
}

// TestEndCostsOnce checks that a peer that ends a link again and again costs no more than one whose
// letters are about a link that is not there (attack A5, SECURITY.md).
func TestEndCostsOnce(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		yes := s.dial(1, "port", toListener, half{Buffers: mostBuffers, Size: 1, Credit: 1 << 15}, half{})
		for i := range uint32(mostBuffers) {
			if s.frame(s.word(yes.out.Flags+4*i, uint32(PackFlag(0, 1, false)))); i%1000 == 0 {
				s.wait(time.Millisecond)
			}
		}
		cost := func(to uint32) (least time.Duration) {
			for i := range 5 {
				began := processorTime()
				for range 100 {
					var b [boxSize]byte
					l := letter{kind: letterClose, from: 1, to: to, attempt: 1}
					k := l.put(b[:])
					s.frame(s.mailed(b[:k], uint32(k)))
				}
				s.wait(10 * time.Millisecond)
				if d := processorTime() - began; i == 0 || d < least {
					least = d
				}
			}
			return least
		}
		if none, real := cost(yes.from+1), cost(yes.from); real > 10*none {
			t.Errorf("100 letters of an end take %v, of none %v", real, none)
		}
		if err := (<-made).Err(); !errors.Is(err, ErrPeerClosed) {
			t.Errorf("the link ended with %v", err)
		}
	})
}

// processorTime returns what the process took so far: the clock of the test stands still.
func processorTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
