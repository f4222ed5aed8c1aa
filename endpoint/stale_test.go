package endpoint

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
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
		if got := s.recv(10 * time.Millisecond); acked(got, 4) || mem.Load32(0) != 0 || c.Stats().RefusedBy(RefusedStale) != 1 {
			t.Error("a copy was counted")
		}
		s.send(4, data(life, 3, 3, 80, pattern(1, 8)))
		if !acked(s.recv(10*time.Millisecond), 4) || mem.Load32(0) != life+1 {
			t.Error("not completed")
		}
	})
}

// sentAgain sends a frame, once more if it is not acknowledged, as our kind does, and
// reports whether it is in the end.
func sentAgain(s *stranger, id frame.Seq, m msg) bool {
	for range 2 {
		s.send(id, m)
		if acked(s.recv(10*time.Millisecond), id) {
			return true
		}
	}
	return false
}

// TestUnseenWrap: the peer's ids wrapped behind frames without messages, all of
// them lost. What looks like an id long known is new, and must not be lost: it is
// believed when it comes again.
func TestUnseenWrap(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		for i := range 50 {
			s.send(frame.Seq(2+i), data(life+uint32(i), 1, 1, 64, pattern(i, 8)))
		}
		s.recv(10 * time.Millisecond)
		for i, id := range []frame.Seq{20, 21, 60000, 40000, 40001, 30} {
			if !sentAgain(s, id, data(life+50+uint32(i), 1, 1, 64, pattern(1, 8))) || c.Stats().Completions != uint64(51+i) {
				t.Errorf("id %d: not applied", id)
			}
		}
	})
}

// TestAckOnlyForwardJump: a frame without messages costs no later data, wherever
// its id is: without a stamp it is nobody's, with one it tells how far the peer
// is, and a held-back copy lies behind.
func TestAckOnlyForwardJump(t *testing.T) {
	for _, jump := range []ack.Wide{1000, 8000, 20000, 33000, 60000, 1 << 16, 1 << 20} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			done := 0
			apply := func(from ack.Wide) {
				for i := range ack.Wide(37) {
					if !sentAgain(s, (from + i).Seq(), data(life+uint32(done), 1, 1, 64, pattern(done, 8))) {
						t.Fatalf("jump %d: id %d was lost", jump, from+i)
					}
					done++
				}
				if got := c.Stats().Completions; got != uint64(done) {
					t.Errorf("jump %d: %d completions", jump, got)
				}
			}
			apply(2)
			s.send(2 + jump.Seq())
			apply(39)
			s.alone(stamp(s.theirs, 75+jump, 0), 0)
			apply(76 + jump)
			s.alone(stamp(s.theirs, 60, 0), 0)
			apply(113 + jump)
			if st := c.Stats(); st.RefusedBy(RefusedNoSession) != 1 {
				t.Errorf("jump %d: refused %v", jump, st.Refused)
			}
		})
	}
}

// TestHeldBackAcknowledgement: frames without messages that acknowledge an
// earlier use of the id in flight, in this life or another, acknowledge nothing.
func TestHeldBackAcknowledgement(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		finished := false
		tx := &Transaction{Completion: Word(4, 1), Done: func(*Transaction, error) { finished = true }}
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		c.mu.Lock()
		id := c.tx.sender.NextWide() - 1
		c.mu.Unlock()
		var bare [frame.HeaderSize]byte
		h := frame.Header{Dst: 2, Src: 1, Seq: 2, AckStart: id.Seq(), AckCount: 1}
		h.Put(bare[:])
		for _, x := range []struct {
			name string
			why  Reason
			send func()
		}{
			{"without a stamp", RefusedNoSession, func() { s.raw(bare[:]) }},
			{"one byte short", RefusedNoSession, func() { s.raw(append(bare[:], make([]byte, frame.StampSize-1)...)) }},
			{"of all zeros", RefusedNoSession, func() { s.raw(append(bare[:], make([]byte, frame.StampSize)...)) }},
			{"to another life", RefusedForeign, func() { s.alone(stamp(s.theirs+1, 2, id), 1) }},
			{"of a wrap before", RefusedAckTooOld, func() { s.alone(stamp(s.theirs, 2, id-1<<16), 1) }},
			{"of a wrap ahead", RefusedAckOfUnsent, func() { s.alone(stamp(s.theirs, 2, id+1<<16), 1) }},
			{"partly of unsent", RefusedAckOfUnsent, func() { s.alone(stamp(s.theirs, 2, id), 100) }},
		} {
			before := c.Stats().RefusedBy(x.why)
			x.send()
			time.Sleep(2 * helloFirst)
			synctest.Wait()
			if got := c.Stats().RefusedBy(x.why) - before; got != 1 || finished {
				t.Errorf("%s: %v counted %d times, done %v", x.name, x.why, got, finished)
			}
		}
		// Who lost count is told where the ids are.
		told := 0
		for _, f := range s.recv(time.Millisecond) {
			if _, ok := helloOf(&f); ok {
				told++
				if at := ack.Wide(f.HelloID()).Diff(id); at < 0 || at > 100 {
					t.Errorf("told an id %d from the one in flight", at)
				}
			}
		}
		if told != 4 {
			t.Errorf("told %d times, want 4", told)
		}
		s.alone(stamp(s.theirs, 2, id), 1)
		s.recv(time.Millisecond)
		if !finished {
			t.Error("the true acknowledgement was refused")
		}
	})
}

// TestStampSent: what we send without messages says to which life it speaks, and
// has its ids whole, behind the peer's and our wraps.
func TestStampSent(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		const far = 5<<16 + 65530
		for range 2 { // so far away it needs a witness
			s.alone(stamp(s.theirs, far, 0), 0)
		}
		seen := 0
		var last uint32
		for i := range ack.Wide(20) {
			s.send((far + i).Seq(), data(life+uint32(i), 1, 1, 64, pattern(1, 8)))
			for _, f := range s.recv(10 * time.Millisecond) {
				st, ok := f.Stamp()
				if !ok || st.Life != life || ack.Wide(st.Start) > far+i || ack.Wide(st.Start)+ack.Wide(f.AckCount) != far+i+1 {
					t.Fatalf("frame %d: %+v in %+v", i, st, f.Header)
				}
				if seen++; seen > 1 && st.ID != last+1 {
					t.Errorf("id %d after %d", st.ID, last)
				}
				last = st.ID
			}
		}
		if seen != 20 {
			t.Errorf("%d frames, want 20", seen)
		}
	})
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
		tooLarge := &Transaction{Segments: []Segment{{4096, all[:size-1]}, {0, all[:8]}}, Completion: Word(0, 0)}
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
			{Segments: []Segment{{264, []byte{4, 3, 2, 1}}}},
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

// TestDuplicateBeyondTags: a copy from so far back that only its id and its
// transactions are known is acknowledged again, but what it acknowledges itself
// does not count; another frame under such an id is new.
func TestDuplicateBeyondTags(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		finished := false
		tx := &Transaction{Completion: Word(4, 1), Done: func(*Transaction, error) { finished = true }}
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		sent := s.recv(time.Millisecond)[0]
		first := s.encode(2, data(life, 1, 1, 64, pattern(1, 8)))
		s.raw(first)
		for i := range uint32(2000) {
			s.send(frame.Seq(3+i), data(life+1+i, 1, 1, 64, pattern(1, 8)))
		}
		s.recv(10 * time.Millisecond)
		frame.PutAck(first, sent.Seq, 1)
		s.raw(first)
		if !acked(s.recv(5*time.Millisecond), 2) || c.Stats().Duplicates != 1 {
			t.Error("was not acknowledged again")
		}
		if finished {
			t.Error("an acknowledgement from far back was believed")
		}
		if !sentAgain(s, 5, data(life+5000, 1, 1, 64, pattern(1, 8))) || c.Stats().Completions != 2002 {
			t.Error("a new frame under an id from far back was lost")
		}
	})
}

// TestHeldBackForHalfOfAllIDs: copies of a foreign peer's frames that the network held back
// until they lie ahead of what comes now bring back neither ids nor data, though several
// come; one is believed that comes again, or behind another one, when nothing else came for a second.
func TestHeldBackForHalfOfAllIDs(t *testing.T) {
	const half = 32000
	for _, acks := range []bool{false, true} { // what is held back
		withStranger(t, Config{}, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			s.send(1, data(life, 1, 1, 64, pattern(1, 8)))
			held := func() {
				for id := range frame.Seq(3) {
					if acks {
						s.send(half)
						s.send(2) // the present one
					} else {
						s.send(half+id, data(life-10+uint32(id), 1, 1, 64, pattern(2, 8)))
					}
				}
				s.recv(time.Millisecond)
			}
			held()
			s.send(2, data(life+1, 1, 1, 64, pattern(3, 8)))
			s.recv(time.Millisecond)
			if got := c.Stats().Completions; got != 2 {
				t.Errorf("acknowledgements %v: %d completions, want 2; refused %v", acks, got, c.Stats().Refused)
			}
			if acks {
				return
			}
			time.Sleep(heldBack)
			held()
			if got := c.Stats().Completions; got != 4 { // the first is the witness
				t.Errorf("after a second %d completions, want 4; refused %v", got, c.Stats().Refused)
			}
		})
	}
}
