package endpoint

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestStaleMixedFrame: a late copy of a frame that holds the end of one
// transaction and the beginning of another, when its id is due again. One
// message of a transaction that is over proves that the whole frame is old.
func TestStaleMixedFrame(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		one, two := pattern(1, 8), pattern(2, 8)
		s.send(2, data(life, 2, 1, 64, one))
		mixed := s.encode(3, data(life, 2, 2, 72, one), data(life+1, 3, 1, 128, two))
		s.raw(mixed)
		s.recv(10 * time.Millisecond)
		// 65536 ids later: frame 3 of the next round is still missing.
		late := frame.Header{Dst: 2, Src: 1, Seq: 4, Flags: frame.FlagMessages}
		late.Put(mixed)
		s.raw(mixed)
		got := s.recv(10 * time.Millisecond)
		if acked(got, 4) {
			t.Error("a stale frame was acknowledged")
		}
		if st := c.Stats(); st.Completions != 1 || st.Open != 1 || st.RefusedBy(RefusedStale) != 1 {
			t.Errorf("%d completions, %d open, refused %v", st.Completions, st.Open, st.Refused)
		}
		// The real frame 4 is not taken for a duplicate.
		s.send(4, data(life+1, 3, 2, 136, two), data(life+1, 3, 3, 144, two))
		if !acked(s.recv(10*time.Millisecond), 4) || c.Stats().Completions != 2 {
			t.Error("the frame that the id belongs to was lost")
		}
	})
}

// TestLateCopyInsideOpenTransaction: the copy's transaction is still open, so
// only the message index can tell. Counting it would complete too early.
func TestLateCopyInsideOpenTransaction(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		mem := e.memory.(*Region)
		s.send(2, data(life, 3, 1, 64, pattern(1, 8)))
		s.send(3, data(life, 3, 2, 72, pattern(1, 8)))
		s.send(4, data(life, 3, 1, 64, pattern(1, 8))) // under an id of the next round
		if got := s.recv(10 * time.Millisecond); acked(got, 4) || mem.Load32(0) != 0 {
			t.Error("a copy was counted")
		}
		s.send(4, data(life, 3, 3, 80, pattern(1, 8)))
		if !acked(s.recv(10*time.Millisecond), 4) || mem.Load32(0) != life+1 {
			t.Error("not completed")
		}
	})
}

// TestUnseenWrap: the peer's ids wrapped behind frames without messages, all of
// them lost. What looks like an id long known is new, and must not be lost.
func TestUnseenWrap(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		for i := range 50 {
			s.send(frame.Seq(2+i), data(life+uint32(i), 1, 1, 64, pattern(i, 8)))
		}
		for i, id := range []frame.Seq{20, 21, 60000, 40000, 40001, 30} {
			s.send(id, data(life+50+uint32(i), 1, 1, 64, pattern(1, 8)))
			if !acked(s.recv(10*time.Millisecond), id) || c.Stats().Completions != uint64(51+i) {
				t.Errorf("id %d: not applied", id)
			}
		}
	})
}

// TestAckOnlyForwardJump: a held-back copy of a frame without messages, with an
// id anywhere, costs no later data.
func TestAckOnlyForwardJump(t *testing.T) {
	for _, jump := range []int{1000, 8000, 20000, 33000, 60000} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			s.send(2, data(life, 1, 1, 64, pattern(1, 8)))
			s.send(frame.Seq(2).Add(jump))
			for i := 3; i < 40; i++ {
				s.send(frame.Seq(i), data(life+uint32(i), 1, 1, 64, pattern(i, 8)))
				if !acked(s.recv(10*time.Millisecond), frame.Seq(i)) {
					t.Fatalf("jump %d: id %d was lost", jump, i)
				}
			}
			if got := c.Stats().Completions; got != 38 {
				t.Errorf("jump %d: %d completions", jump, got)
			}
		})
	}
}

// TestSwallowDoesNotStickMark: a transaction that never completes does not keep
// later ones from being known as over.
func TestSwallowDoesNotStickMark(t *testing.T) {
	mem, _ := NewRegion(4096)
	withStranger(t, Config{Memory: &pickyMemory{mem, 512, 1024}}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.send(2, data(life, 1, 1, 1024, pattern(1, 8)))
		txn := uint32(life)
		id := frame.Seq(2)
		for range 200 {
			id++
			txn += 1000
			s.send(id, data(txn, 1, 1, 64, pattern(1, 8)))
		}
		s.recv(10 * time.Millisecond)
		s.send(id+1, data(life, 1, 1, 1024, pattern(1, 8)))
		s.send(id+1, data(txn-1000, 1, 1, 64, pattern(1, 8)))
		if acked(s.recv(10*time.Millisecond), id+1) || c.Stats().RefusedBy(RefusedStale) != 2 {
			t.Error("late copies were taken for new")
		}
		if c.Stats().Completions != 200 {
			t.Errorf("%d completions", c.Stats().Completions)
		}
	})
}

// TestTransactionIDWrap: ids pass 2^32.
func TestTransactionIDWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Entropy: func() uint32 { return 1<<32 - 5 }}})
		defer p.close()
		for i := range 20 {
			if err := p.toB.Write(context.Background(), write(64, pattern(i, 4000), 0, uint32(i+1))); err != nil {
				t.Fatal(err)
			}
			if p.memB.Load32(0) != uint32(i+1) {
				t.Fatal("done, but not written")
			}
		}
	})
}

// TestLargestTransaction: 65535 messages pass, 65536 do not (DGRDMA-003), and
// its ids wrap on the way.
func TestLargestTransaction(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 90 MB; the full run has it")
	}
	synctest.Test(t, func(t *testing.T) {
		const perFrame = 1480 - frame.MessageHeaderSize
		size := perFrame * frame.MaxMessages
		p := newPair(t, pairConfig{size: 4096 + size, a: Config{FirstFrame: 65000}, link: simnet.Link{Latency: 20 * time.Microsecond, Loss: 0.01}})
		defer p.close()
		all := pattern(3, size+1)
		early := atomic.Bool{}
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				if p.memB.Load32(0) == 1 && p.memB.Bytes()[4096+size-1] != all[size-1] {
					early.Store(true)
				}
			}
		}()
		if err := p.toB.Post(write(4096, all, 0, 1)); !errors.Is(err, ErrBounds) {
			t.Errorf("one byte too many for the memory: %v", err)
		}
		if err := p.toB.Write(context.Background(), write(4096, all[:size], 0, 1)); err != nil {
			t.Fatal(err)
		}
		close(stop)
		if string(p.memB.Bytes()[4096:]) != string(all[:size]) {
			t.Error("memory differs")
		}
		if early.Load() {
			t.Error("completed early")
		}
		tooLarge := &Transaction{Segments: []Segment{{4096, all[:size-1]}, {0, all[:8]}}}
		if err := p.toB.Post(tooLarge); !errors.Is(err, ErrTooLarge) {
			t.Errorf("65536 messages: %v", err)
		}
	})
}

// TestWatch: who waits for a word is woken by completions, at any alignment,
// and by data of four bytes (quirk F15).
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		for i, tx := range []*Transaction{
			write(64, pattern(1, 100), 256, 0x01020304),
			write(64, pattern(1, 100), 261, 0x01020304),
			{Segments: []Segment{{264, []byte{4, 3, 2, 1}}}, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion},
		} {
			addr := []uint32{256, 261, 264}[i]
			got := make(chan error, 1)
			go func() { got <- p.memB.WaitFor(context.Background(), addr, 0x01020304) }()
			synctest.Wait()
			if err := p.toB.Write(context.Background(), tx); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := p.memB.WaitFor(ctx, 512, 9); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a word nobody writes: %v", err)
		}
		if err := p.memB.WaitFor(ctx, uint32(p.memB.Size()-3), 9); !errors.Is(err, ErrBounds) {
			t.Errorf("a word outside: %v", err)
		}
		if err := p.memB.WaitFor(ctx, 256, 0x01020304); err != nil {
			t.Errorf("a word that is there, with a context that is done: %v", err)
		}
	})
}
