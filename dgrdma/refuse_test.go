package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

const life = 1000

// withFakePeer runs a test of one endpoint, id 2 with 4096 bytes of memory,
// against a scripted peer, id 1.
func withFakePeer(t *testing.T, cfg Config, prof Profile, test func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer)) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		mem, err := NewRegion(4096)
		if err != nil {
			t.Fatal(err)
		}
		cfg.ID = 2
		if cfg.Memory == nil {
			cfg.Memory = mem
		}
		e, err := New(n.Attach(addrB, simnet.Config{Poison: true}), &cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c, err := e.Connect(Peer{ID: 1, Addr: addrA, Size: 4096, Profile: &prof})
		if err != nil {
			t.Fatal(err)
		}
		s := newStranger(t, n, addrA, 1, 2, addrB)
		if prof.Session {
			s.greet(life)
		}
		s.recv(10 * time.Millisecond)
		test(t, e, c, s)
	})
}

func data(txn uint32, count, index uint16, addr uint32, b []byte) msg {
	return msg{frame.Message{
		Txn: txn, CompletionAddr: 0, CompletionValue: txn + 1, Count: count, Index: index, Addr: addr,
	}, b}
}

// acked reports whether the frames acknowledge id.
func acked(frames []frame.Frame, id frame.Seq) bool {
	for _, f := range frames {
		if d := id.Diff(f.AckStart); d >= 0 && d < int(f.AckCount) {
			return true
		}
	}
	return false
}

// TestBadFramesAreCountedByName checks that every way to be wrong has its counter, is not
// acknowledged, changes nothing, and leaves the peer usable.
func TestBadFramesAreCountedByName(t *testing.T) {
	eight := []byte("12345678")
	valid := data(life, 1, 1, 64, eight)
	cases := []struct {
		name string
		why  Reason
		send func(s *fakePeer)
	}{
		{"addressPastEnd", RefusedBounds, func(s *fakePeer) { s.send(2, data(life, 1, 1, 4090, eight)) }},
		{"addressWraps", RefusedBounds, func(s *fakePeer) { s.send(2, data(life, 1, 1, 0xFFFFFFFC, eight)) }},
		{"completionPastEnd", RefusedBounds, func(s *fakePeer) {
			m := valid
			m.CompletionAddr = 4093
			s.send(2, m)
		}},
		{"completionWraps", RefusedBounds, func(s *fakePeer) {
			m := valid
			m.CompletionAddr = 0xFFFFFFFE
			s.send(2, m)
		}},
		{"secondMessageBad", RefusedBounds, func(s *fakePeer) { s.send(2, valid, data(life+1, 1, 1, 5000, eight)) }},
		{"fieldsDisagreeInFrame", RefusedInconsistent, func(s *fakePeer) {
			m := data(life, 3, 2, 64, eight)
			m.CompletionValue++
			s.send(2, data(life, 3, 1, 64, eight), m)
		}},
		{"ackOfUnsent", RefusedAckOfUnsent, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, conn *Conn, s *fakePeer) {
				mem := e.memory.(*Region)
				before := string(mem.Bytes())
				if c.name == "ackOfUnsent" {
					s.acks(5)
					s.upTo = s.theirs
				} else {
					c.send(s)
				}
				if acked(s.recv(50*time.Millisecond), 2) {
					t.Error("was acknowledged")
				}
				if got := conn.Stats().RefusedBy(c.why); got != 1 {
					t.Errorf("%v counted %d times, want 1: %v", c.why, got, conn.Stats().Refused)
				}
				if string(mem.Bytes()) != before {
					t.Error("memory changed")
				}
				if open := conn.Stats().Open; open != 0 {
					t.Errorf("%d transactions left open", open)
				}
				s.send(3, valid)
				if !acked(s.recv(50*time.Millisecond), 3) || mem.Load32(0) != life+1 {
					t.Error("a valid frame afterwards was not applied")
				}
			})
		})
	}
}

// TestFarAheadIsTold checks that a frame whose id is too far ahead is refused, and that this is
// told with its transaction.
func TestFarAheadIsTold(t *testing.T) {
	var told []Event
	cfg := Config{OnEvent: func(e Event) {
		if e.Kind == FrameRefused {
			told = append(told, e)
		}
	}}
	withFakePeer(t, cfg, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(2, data(life, 1, 1, 64, pattern(1, 8)))
		s.send(2+20000, data(life+1, 1, 1, 64, pattern(1, 8)))
		s.recv(time.Millisecond)
		if len(told) != 1 || told[0].Reason != RefusedForeign || told[0].Txn != life+1 || told[0].Conn != c {
			t.Errorf("told of %+v", told)
		}
	})
}

// TestTruncatedAtEveryOffset checks that nothing is applied in part and nothing is acknowledged,
// whatever is cut off (DGRDMA-021).
func TestTruncatedAtEveryOffset(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		whole := s.encode(2, data(life, 2, 1, 64, pattern(1, 20)), data(life, 2, 2, 96, pattern(2, 20)))
		for n := range whole {
			s.raw(whole[:n])
		}
		if acked(s.recv(50*time.Millisecond), 2) {
			t.Error("a truncated frame was acknowledged")
		}
		// Without its messages, and with the flag that promises them, a header
		// alone is malformed too.
		if got := e.Stats().RefusedBy(RefusedMalformed); got != uint64(len(whole)) {
			t.Errorf("%d counted as malformed, want %d", got, len(whole))
		}
		s.raw(whole)
		if !acked(s.recv(50*time.Millisecond), 2) || e.memory.(*Region).Load32(0) != life+1 {
			t.Error("the whole frame was not applied")
		}
	})
}

// TestUnknownSourcesAreRefused checks that frames of unknown sources are refused (DGRDMA-012,
// DGRDMA-038).
func TestUnknownSourcesAreRefused(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		m := data(life, 1, 1, 64, pattern(1, 8))
		s.dst = 9
		s.send(2, m)
		s.dst, s.id = 2, 7
		s.send(3, m)
		s.id = 0
		s.send(4, m)
		s.id = 1
		elsewhere := newStranger(t, s.net, simnet.Addr(5), 1, 2, addrB)
		elsewhere.send(5, m)
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		// The frame from endpoint 7 is of no session that there is, and its sender may have had it.
		if len(s.raws) != 1 || !isReset(t, s.raws[0], 7) {
			t.Errorf("answered: %x", s.raws)
		}
		if f := elsewhere.recv(0); len(f) != 0 {
			t.Errorf("answered: %v", f)
		}
		if st := e.Stats(); st.RefusedBy(RefusedDestination) != 1 || st.RefusedBy(RefusedSource) != 2 || st.RefusedBy(RefusedNoSession) != 1 {
			t.Errorf("counted %v", st.RefusedReasons())
		}
	})
}

// TestTooManyOpenTransactions checks that a peer that never completes any transaction fills its own
// table, and no other's (DGRDMA-039).
func TestTooManyOpenTransactions(t *testing.T) {
	withFakePeer(t, Config{OpenIncoming: 16}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		other, err := e.Connect(Peer{ID: 3, Addr: simnet.Addr(3)})
		if err != nil {
			t.Fatal(err)
		}
		s3 := newStranger(t, s.net, simnet.Addr(3), 3, 2, addrB)
		s3.greet(5)
		for i := range 100 {
			s.send(frame.Seq(2+i), data(life+uint32(i), 2, 1, 64, pattern(i, 8)))
		}
		s.recv(50 * time.Millisecond)
		st := c.Stats()
		if st.Open != 16 || st.RefusedBy(RefusedTooManyOpen) != 84 {
			t.Errorf("%d open, %d refused", st.Open, st.RefusedBy(RefusedTooManyOpen))
		}
		// What is open can still be completed, and makes room.
		s.send(200, data(life, 2, 2, 72, pattern(1, 8)))
		s.send(201, data(life+50, 2, 1, 64, pattern(1, 8)))
		if got := s.recv(50 * time.Millisecond); !acked(got, 200) || !acked(got, 201) {
			t.Error("no room after one completed")
		}
		s3.send(2, data(5, 2, 1, 64, pattern(1, 8)), data(5, 2, 2, 72, pattern(1, 8)))
		if !acked(s3.recv(50*time.Millisecond), 2) || other.Stats().Completions != 1 {
			t.Error("another peer is affected")
		}
	})
}

// pickyMemory refuses or discards by address.
type pickyMemory struct {
	*Region
	refuse, swallow uint32
}

var errPicky = errors.New("not there")

func (p *pickyMemory) Admit(src frame.EndpointID, m *frame.Message) ([]byte, error) {
	switch {
	case m.Len > 0 && m.Addr == p.refuse:
		return nil, errPicky
	case m.Len > 0 && m.Addr == p.swallow:
		return nil, Swallow(errPicky)
	}
	return p.Region.Admit(src, m)
}

// TestRefuseAndDiscard checks that refused frames are not acknowledged and change nothing; and that
// discarded messages are, and their transaction never completes.
func TestRefuseAndDiscard(t *testing.T) {
	mem, _ := NewRegion(4096)
	picky := &pickyMemory{mem, 512, 1024}
	var lost []uint32
	cfg := Config{Memory: picky, OnEvent: func(e Event) {
		if e.Kind == TransactionLost {
			lost = append(lost, e.Txn)
		}
	}}
	withFakePeer(t, cfg, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(2, data(life, 3, 1, 1024, pattern(1, 8)), data(life, 3, 2, 64, pattern(1, 8)), data(life, 3, 3, 512, pattern(1, 8)))
		s.send(3, data(life+1, 2, 1, 256, pattern(3, 8)), data(life+1, 2, 2, 1024, pattern(3, 8)))
		got := s.recv(50 * time.Millisecond)
		if acked(got, 2) || mem.Bytes()[64] != 0 || c.Stats().RefusedBy(RefusedMemory) != 1 {
			t.Error("a refused frame had effects")
		}
		if !acked(got, 3) || mem.Bytes()[256] != pattern(3, 8)[0] || c.Stats().Swallowed != 1 {
			t.Error("a swallowed message was not acknowledged, or its neighbour not placed")
		}
		if mem.Load32(0) != 0 || len(lost) != 1 || lost[0] != life+1 {
			t.Errorf("word %d, lost %v", mem.Load32(0), lost)
		}
		if c.Stats().Open != 0 {
			t.Error("a transaction stayed open")
		}
	})
}

// TestAckOnlyNeverAcked checks that nothing is ever sent in answer to a frame without messages,
// whatever its id, or two endpoints would never be quiet (DGRDMA-024, quirk F14).
func TestAckOnlyNeverAcked(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		for _, id := range []frame.Seq{2, 2, 3, 1, 60000, 30000, 500, 3} {
			_ = id
			s.acks(0)
		}
		if f := s.recv(10 * time.Second); len(f) != 0 {
			t.Errorf("answered: %v", f)
		}
	})
}

// TestDuplicateIsAckedAgain checks that a duplicate is acknowledged again, and not applied
// (DGRDMA-027, DGRDMA-028, DGRDMA-032).
func TestDuplicateIsAckedAgain(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		done := make(chan error, 1)
		tx := &Transaction{Completion: Word(4, 1), Done: func(_ *Transaction, err error) { done <- err }}
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		sent := s.recv(time.Millisecond)
		b := s.encode(2, data(life, 1, 1, 64, pattern(1, 8)))
		s.raw(b)
		if !acked(s.recv(5*time.Millisecond), 2) {
			t.Fatal("not acknowledged")
		}
		// The same frame again, now with an acknowledgement.
		frame.PutSessionAck(b, s.theirs+uint32(sent[0].Seq))
		frame.PutCopy(b, 1)
		s.raw(b)
		if !acked(s.recv(5*time.Millisecond), 2) {
			t.Error("a duplicate was not acknowledged again")
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the acknowledgement in a duplicate was ignored")
		}
		if st := c.Stats(); st.Completions != 1 || st.Duplicates != 1 {
			t.Errorf("%d completions, %d duplicates", st.Completions, st.Duplicates)
		}
	})
}

// TestPostRefusesWhatCannotWork checks that Post returns an error for what cannot work, before
// anything is queued.
func TestPostRefusesWhatCannotWork(t *testing.T) {
	withFakePeer(t, Config{Queue: 2}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		huge := &Transaction{Segments: make([]Segment, frame.MaxMessages+1)}
		for i := range huge.Segments {
			huge.Segments[i] = Segment{0, []byte{1}}
		}
		for _, x := range []struct {
			name string
			t    *Transaction
			want error
		}{
			{"data past the peer's memory", write(4090, pattern(1, 8), 0, 1), ErrBounds},
			{"data past 2^32", write(0xFFFFFFFC, pattern(1, 8), 0, 1), ErrBounds},
			{"completion past the peer's memory", write(0, nil, 4094, 1), ErrBounds},
			{"too many messages", huge, ErrTooLarge},
		} {
			if err := c.Post(x.t); !errors.Is(err, x.want) {
				t.Errorf("%s: %v, want %v", x.name, err, x.want)
			}
		}
		a, b := write(0, nil, 0, 1), write(0, nil, 0, 2)
		if err := errors.Join(c.Post(a), c.Post(b)); err != nil {
			t.Fatal(err)
		}
		if err := c.Post(a); !errors.Is(err, ErrInUse) {
			t.Errorf("posted twice: %v", err)
		}
		if err := c.Post(write(0, nil, 0, 3)); !errors.Is(err, ErrQueueFull) {
			t.Errorf("third of two: %v", err)
		}
		// Its context ends while it waits for the queue.
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := c.Write(ctx, write(0, nil, 0, 3)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
	})
}

// isReset reports whether a frame says to that endpoint that there is no such session.
func isReset(t *testing.T, b []byte, to frame.EndpointID) bool {
	t.Helper()
	f, err := frame.ParseSession(b)
	if err != nil {
		t.Fatal(err)
	}
	return f.Control == frame.ControlReset && f.Dst == to
}
