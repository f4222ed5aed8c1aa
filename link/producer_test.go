package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// aloneWith runs a test of a link that sends to a fake peer, into n buffers of 8 bytes.
func aloneWith(t *testing.T, n uint32, test func(t *testing.T, h *Host, out *Link, s *fakePeer)) {
	withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		if yes := s.dial(1, "port", toDialer, half{}, buffers(n, 8)); yes.kind != letterAccept {
			t.Fatalf("%+v", yes)
		}
		test(t, h, <-made, s)
	})
}

// TestCommitsThatAreNone checks that a buffer that was not acquired, or is not held any more, is not
// sent, and that no buffer is sent with a length that no message can have.
func TestCommitsThatAreNone(t *testing.T) {
	aloneWith(t, 4, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
		out := l.Out
		none := func(when string, b Buffer, n int, want error) {
			t.Helper()
			if err := out.Commit(b, 0, n); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", when, err, want)
			}
			if got := out.stats().Messages; got != 0 {
				t.Fatalf("%s: %d messages were sent", when, got)
			}
		}
		none("none acquired", Buffer{}, 0, ErrOutOfTurn)
		b, err := out.Acquire(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		none("the zero Buffer", Buffer{}, 0, ErrOutOfTurn)
		none("less than nothing", b, -1, ErrTooLong)
		none("more than there is", b, 9, ErrTooLong)
		if err := out.Send(soon(t), 0, nil); !errors.Is(err, ErrOutOfTurn) || !strings.HasSuffix(err.Error(), "commit them first") {
			t.Errorf("Send before what was acquired: %v", err)
		}
		if got := out.stats().Acquired; got != 1 {
			t.Errorf("%d buffers are acquired, want 1", got)
		}
		none("nothing more", Buffer{}, 0, ErrOutOfTurn)
		s.letter(letter{kind: letterClose, from: 1, to: l.number, attempt: 1, text: "enough"})
		if err := out.Close(); !errors.Is(err, ErrPeerClosed) {
			t.Errorf("Close: %v", err)
		}
		none("forgotten", b, 0, ErrClosed)
	})
}

// TestNothingOfADeadLink checks that a link that failed, or whose end of file was sent, hands out no
// buffer.
func TestNothingOfADeadLink(t *testing.T) {
	aloneWith(t, 4, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
		l.fail(ErrProtocol)
		for range 2 {
			if _, err := l.Out.Acquire(soon(t)); !errors.Is(err, ErrProtocol) {
				t.Errorf("Acquire: %v", err)
			}
			if _, ok := l.Out.TryAcquire(); ok {
				t.Error("TryAcquire: a buffer of a link that failed")
			}
		}
		if got := l.Stats().Out; got.Acquired != 0 || got.Free != 4 {
			t.Errorf("%+v", *got)
		}
	})
	aloneWith(t, 4, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
		if err := l.Out.Close(); err != nil {
			t.Fatal(err)
		}
		if _, ok := l.Out.TryAcquire(); ok {
			t.Error("TryAcquire: a buffer after end of file")
		}
		if _, err := l.Out.Acquire(soon(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("Acquire: %v", err)
		}
		if got := l.Stats().Out; got.Acquired != 0 {
			t.Errorf("%+v", *got)
		}
	})
}

// TestCommitAfterAbort checks that what is committed after the end of the link is not sent, that the
// error says so, and that nothing of the link is kept.
func TestCommitAfterAbort(t *testing.T) {
	aloneWith(t, 4, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
		b, err := l.Out.Acquire(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Abort(soon(t), "enough"); err != nil {
			t.Fatal(err)
		}
		if err := l.Out.Commit(b, 0, 8); !errors.Is(err, ErrClosed) {
			t.Errorf("Commit: %v", err)
		}
		if got := l.Stats().Out; !got.Lost || got.Unacknowledged != 0 || got.Acquired != 0 {
			t.Errorf("%+v", *got)
		}
		if err := l.Out.Flush(soon(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("Flush: %v", err)
		}
		s.letter(letter{kind: letterClose, from: 1, to: l.number, attempt: 1})
		nothingLeft(t, h)
	})
}

// TestLostMessages checks that Flush fails for messages that may not have arrived, however the
// connection ended: the peer fell silent, or a reset gave up all that was in flight, for which there
// is no event.
func TestLostMessages(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(h *Host, l *Link, s *fakePeer)
		want error
	}{
		{"silence", func(h *Host, l *Link, s *fakePeer) { s.wait(2 * h.ep.GiveUp()) }, dgrdma.ErrPeerDown},
		{"reset", func(h *Host, l *Link, s *fakePeer) { l.Peer().Reset(1); s.wait(time.Millisecond) }, dgrdma.ErrReset},
	} {
		t.Run(c.name, func(t *testing.T) {
			aloneWith(t, 4, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
				s.mu.Lock()
				s.mute = true
				s.mu.Unlock()
				if err := l.Out.Send(soon(t), 0, []byte("lost")); err != nil {
					t.Fatal(err)
				}
				c.end(h, l, s)
				if got := l.Stats(); !errors.Is(got.Err, c.want) || !got.Out.Lost || got.Out.Unacknowledged != 0 {
					t.Errorf("%v, %+v", got.Err, *got.Out)
				}
				if err := l.Out.Flush(soon(t)); !errors.Is(err, c.want) {
					t.Errorf("Flush: %v, want %v", err, c.want)
				}
			})
		})
	}
}

// TestWaitForBuffersEnds checks that a goroutine that waits for a buffer is woken when a quarter of
// them is free, given back and acknowledged, and not for less while something is in flight.
func TestWaitForBuffersEnds(t *testing.T) {
	aloneWith(t, 12, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
		send := func(n int) {
			for range n {
				if err := l.Out.Send(soon(t), 0, nil); err != nil {
					t.Fatal(err)
				}
			}
			s.wait(20 * time.Millisecond)
		}
		send(10)
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		send(2)
		got := make(chan error, 1)
		go func() { _, err := l.Out.Acquire(t.Context()); got <- err }()
		for back := range uint32(3) {
			s.wait(time.Millisecond)
			if len(got) > 0 {
				t.Fatalf("woken when %d of 12 buffers were free: %v", back, <-got)
			}
			s.frame(s.word(uint32(l.Out.words.at), back+1))
		}
		s.wait(time.Millisecond)
		if len(got) == 0 {
			t.Fatal("not woken when 3 of 12 buffers were free")
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

// TestCreditBeforeTheAnswer checks that a word that comes before the listener's answer has no effect,
// and is no offence.
func TestCreditBeforeTheAnswer(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
		dialed := make(chan *Link, 1)
		go func() {
			l, err := dial(soon(t), h, uint16(s.id), "there", nil)
			if err != nil {
				t.Error(err)
			}
			dialed <- l
		}()
		open := s.mail()[0]
		s.frame(s.word(open.out.Credit, 1))
		s.letter(letter{kind: letterAccept, from: 2, to: open.from, attempt: open.attempt, out: buffers(4, 8)})
		l := <-dialed
		if l == nil {
			return
		}
		if got := l.Stats(); got.Err != nil || got.Out.Free != 4 {
			t.Errorf("%v, %+v", got.Err, *got.Out)
		}
	})
}

// TestTakenWithoutAcknowledgements checks that what the peer had up to end of file has arrived, though
// no acknowledgement of it came before the connection ended. A peer that says so before there was an
// end of file is not believed.
func TestTakenWithoutAcknowledgements(t *testing.T) {
	for _, c := range []struct {
		name         string
		ends, hadAll bool
	}{{"had all", true, true}, {"only left", true, false}, {"had more than there was", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			aloneWith(t, 4, func(t *testing.T, h *Host, l *Link, s *fakePeer) {
				s.mu.Lock()
				s.mute = true
				s.mu.Unlock()
				if err := l.Out.Send(soon(t), 0, []byte("taken")); err != nil {
					t.Fatal(err)
				}
				if c.ends {
					l.Out.Finish()
				}
				s.letter(letter{kind: letterClose, hadAll: c.hadAll, from: 1, to: l.number, attempt: 1})
				s.wait(2 * h.ep.GiveUp())
				err := l.Out.Flush(soon(t))
				if got, good := l.Stats().Out, c.ends && c.hadAll; (err == nil) != good || got.Lost == good || got.Unacknowledged != 0 || err != nil && !errors.Is(err, ErrPeerClosed) {
					t.Errorf("Flush: %v, %+v", err, *got)
				}
			})
		})
	}
}

// TestCommitNeedsNoToken checks that a goroutine that waits for a buffer or for acknowledgements does
// not hold up one that commits, and no handler either.
func TestCommitNeedsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, &Options{Buffers: 4, Size: 10})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var got [3]Buffer
		for i := range got {
			var err error
			if got[i], err = out.Out.Acquire(ctx); err != nil {
				t.Fatal(err)
			}
		}
		waits := make(chan error, 1)
		go func() {
			_, err := out.Out.Acquire(ctx) // a quarter is never handed out ahead
			waits <- err
		}()
		synctest.Wait()
		if len(waits) != 0 {
			t.Error("all buffers were handed out ahead")
		}
		for i := range got {
			if err := out.Out.Commit(got[i], 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waits; err != nil {
			t.Error(err)
		}
		for range got {
			m, err := in.In.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			in.In.Release(m)
		}
	})
}

// TestHandlerAnswersWhileFlushing checks that the handler of one host can send while another goroutine
// waits for everything to be acknowledged.
func TestHandlerAnswersWhileFlushing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Latency: time.Millisecond})
		a, b := n.host(1, nil), n.host(2, nil)
		echo := func(l *Link, m Message) {
			if x, ok := l.Out.TryAcquire(); ok && !m.EOF {
				l.Out.Commit(x, m.Opcode, copy(x.Bytes, m.Bytes))
			}
		}
		out, in := join(t, a, b, "port", &Options{Directions: Both, Buffers: 64, Size: 10}, &Options{Directions: Both, Buffers: 64, Size: 10, Handle: echo})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		flushing := make(chan error)
		go func() {
			for range 200 {
				if err := in.Out.Flush(ctx); err != nil {
					flushing <- err
					return
				}
				time.Sleep(100 * time.Microsecond)
			}
			flushing <- nil
		}()
		for i := range 200 {
			if err := out.Out.Send(ctx, uint8(i), []byte("question")); err != nil {
				t.Fatal(err)
			}
			m, err := out.In.Recv(ctx)
			if err != nil || m.Opcode != uint8(i) {
				t.Fatal(m, err)
			}
			out.In.Release(m)
		}
		if err := <-flushing; err != nil {
			t.Error(err)
		}
	})
}
