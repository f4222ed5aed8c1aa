package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// ackFrame returns an ACK of the session whose cumulative acknowledgement is upTo, changed as f says.
func (s *fakePeer) ackFrame(upTo uint32, f func(h *frame.SessionHeader) []frame.Range) []byte {
	h := s.header(upTo)
	h.Ack = upTo
	ranges := f(&h)
	b := make([]byte, 64)
	return b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, ranges)]
}

// TestAcknowledgementsThatDoNotCount checks that what acknowledges a frame in flight in another session, or names frames that have not left,
// acknowledges nothing, and that no ACK is answered.
func TestAcknowledgementsThatDoNotCount(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		finished := false
		if err := c.Post(&Transaction{Completion: Word(4, 1), Done: func(*Transaction, error) { finished = true }}); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		id := c.nextID.Load() - 1
		none := func(*frame.SessionHeader) []frame.Range { return nil }
		bare := make([]byte, frame.HeaderSize)
		h := frame.Header{Dst: 2, Src: 1, Seq: 2, AckStart: frame.Seq(id), AckCount: 1}
		h.Put(bare)
		for _, x := range []struct {
			name string
			why  Reason
			b    []byte
		}{
			{"without a session", RefusedNoSession, bare},
			{"one byte short", RefusedMalformed, s.ackFrame(id, none)[:frame.LeastSessionAck-1]},
			{"of another session of this endpoint's", RefusedForeign, s.ackFrame(id, func(h *frame.SessionHeader) []frame.Range { h.Tag++; return nil })},
			{"of the same epochs the other way", RefusedForeign, s.ackFrame(id, func(h *frame.SessionHeader) []frame.Range {
				if h.Tag = tagOfSession(s.local, s.theirs); h.Tag == tagOfSession(s.theirs, s.local) { // 1 of 65536 pairs
					h.Tag++
				}
				return nil
			})},
			{"of a frame that has not left", RefusedAckOfUnsent, s.ackFrame(id+1, none)},
			{"of frames half of all ids ahead", RefusedAckOfUnsent, s.ackFrame(id+1<<30, none)},
			{"of frames before the first", RefusedAckOfUnsent, s.ackFrame(s.theirs-1, none)},
			{"of ranges that have not left", RefusedAckOfUnsent, s.ackFrame(s.theirs, func(*frame.SessionHeader) []frame.Range {
				return []frame.Range{{First: s.theirs + 2, Count: int(id-s.theirs) + 10}}
			})},
			{"with an echo of a frame that has not left", RefusedAckOfUnsent, s.ackFrame(id, func(h *frame.SessionHeader) []frame.Range {
				h.ID = id + 1
				return nil
			})},
		} {
			before := c.Stats().RefusedBy(x.why)
			strays := e.Stats().RefusedBy(x.why)
			s.raw(x.b)
			got := s.recv(2 * time.Millisecond)
			if st := c.Stats(); st.RefusedBy(x.why)-before != 1 && e.Stats().RefusedBy(x.why)-strays != 1 || finished {
				t.Errorf("%s: refused %v, want one %v more; done %v", x.name, st.RefusedReasons(), x.why, finished)
			}
			for _, f := range got {
				if !f.HasMessages() { // what is in flight is sent again
					t.Errorf("%s: answered by %+v", x.name, f.Header)
				}
			}
		}
		s.raw(s.ackFrame(id, none))
		s.recv(time.Millisecond)
		if !finished {
			t.Error("the true acknowledgement was refused")
		}
	})
}

// TestFramesOfNoSession checks that what comes before a session, or after a peer timed out, counts for nothing.
func TestFramesOfNoSession(t *testing.T) {
	f := newFeed(t, Config{})
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA})
	if err != nil {
		t.Fatal(err)
	}
	f.give(encode(1, 2, bare(life, 1, 1)))
	f.sessions = sessions{1: {life, life + 1}}
	f.give(f.encode(1, 2, bare(life, 1, 1)))
	if st := c.Stats(); st.RefusedBy(RefusedNoSession) != 1 || st.RefusedBy(RefusedForeign) != 1 || st.Completions+st.Duplicates != 0 {
		t.Errorf("before a session: %d completions, refused %v", st.Completions, st.RefusedReasons())
	}
	withFakePeer(t, Config{GiveUp: time.Second}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		if err := c.Write(context.Background(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
			t.Fatal(err)
		}
		s.recv(time.Second)
		before := c.Stats().RefusedBy(RefusedForeign)
		s.acks(2)
		s.send(2, data(life, 1, 1, 64, pattern(1, 8)))
		s.recv(time.Second)
		if st := c.Stats(); st.RefusedBy(RefusedForeign)-before != 2 || st.AcksReceived+st.Completions+st.Duplicates != 0 || e.memory.(*Region).Bytes()[64] != 0 {
			t.Errorf("when it was given up: %d completions, refused %v", st.Completions, st.RefusedReasons())
		}
	})
}

// TestUsedIDs checks that what comes under an id that was used is a copy, however long ago it was and whatever it holds: it is acknowledged
// and not applied.
func TestUsedIDs(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		const frames = 20_000 // more than the window has
		for i := range uint32(frames) {
			s.raw(s.encodeID(1+i, data(life+i, 1, 1, 64, pattern(1, 8))))
			if i%500 == 0 {
				s.recv(10 * time.Millisecond)
			}
		}
		s.recv(10 * time.Millisecond)
		mem := e.memory.(*Region)
		if n := c.Stats().Completions; n != frames {
			t.Fatalf("%d completions, want %d", n, frames)
		}
		for n, id := range []int32{1, 2, frames - ack.MostAhead, frames - 1, frames, 1 - ack.MostAhead, 1 - 1<<30} {
			for range 2 {
				s.raw(s.encodeID(uint32(id), data(life+frames+uint32(n), 1, 1, 128, pattern(1, 8))))
			}
			acks := 0
			for _, f := range s.recv(10 * time.Millisecond) {
				if f.AckCount > 0 {
					acks++
				}
			}
			if st := c.Stats(); acks == 0 || st.Duplicates != uint64(2*n+2) || st.Completions != frames || mem.Bytes()[128] != 0 {
				t.Errorf("id %d: %d acknowledgements, %d copies, %d completions", id, acks, st.Duplicates, st.Completions)
			}
		}
		// What no peer that keeps the rules sends is neither.
		before := c.Stats()
		for _, id := range []uint32{frames + ack.MostAhead + 1, frames + 1<<31 - 1} {
			s.raw(s.encodeID(id, data(life+frames, 1, 1, 128, pattern(1, 8))))
		}
		s.recv(10 * time.Millisecond)
		if st := c.Stats(); st.RefusedBy(RefusedForeign)-before.RefusedBy(RefusedForeign) != 2 || st.Duplicates != before.Duplicates || mem.Bytes()[128] != 0 {
			t.Errorf("too far ahead: %d copies, refused %v", st.Duplicates, st.RefusedReasons())
		}
		s.raw(s.encodeID(frames+ack.MostAhead, data(life+frames, 1, 1, 128, pattern(1, 8))))
		s.recv(10 * time.Millisecond)
		if st := c.Stats(); st.Completions != frames+1 || mem.Bytes()[128] == 0 {
			t.Errorf("the furthest one was not applied: refused %v", st.RefusedReasons())
		}
	})
}

// encodeID is encode of any id, counted from the epoch.
func (s *fakePeer) encodeID(n uint32, msgs ...msg) []byte {
	b := s.encode(0, msgs...)
	h := s.header(s.local + n)
	h.Put(b)
	return b
}

// TestDiscardedIsOver checks that a transaction that never completes, because the memory discards it, holds nothing, and that copies of its
// frame are copies.
func TestDiscardedIsOver(t *testing.T) {
	mem, _ := NewRegion(4096)
	withFakePeer(t, Config{Memory: &pickyMemory{mem, 512, 1024}}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.send(1, data(life, 1, 1, 1024, pattern(1, 8)))
		const others = 200
		for i := range frame.Seq(others) {
			s.send(2+i, data(life+1000*uint32(i), 1, 1, 64, pattern(1, 8)))
		}
		s.recv(10 * time.Millisecond)
		s.send(1, data(life, 1, 1, 1024, pattern(1, 8)))
		s.send(2, data(life+1000, 1, 1, 64, pattern(1, 8)))
		if got := s.recv(10 * time.Millisecond); !acked(got, 1) || !acked(got, 201) {
			t.Error("copies were not acknowledged")
		}
		if st := c.Stats(); st.Completions != others || st.Duplicates != 2 || st.Swallowed != 1 || st.Open != 0 || len(st.RefusedReasons()) != 0 {
			t.Errorf("%d completions, %d copies, %d swallowed, %d open, refused %v", st.Completions, st.Duplicates, st.Swallowed, st.Open, st.RefusedReasons())
		}
	})
}

// TestOneTagBothWays checks that a session works whose frames have the same tag in both directions, as of 1 of 65536 pairs of epochs: over a
// network that loses, doubles, reorders and holds back, and when one endpoint starts again.
func TestOneTagBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		link := simnet.Link{Latency: 50 * time.Microsecond, Loss: .05, Duplicate: .1, Reorder: .1, HoldBack: .1, HoldFor: 100 * time.Millisecond}
		n.Link(addrA, addrB, link)
		n.Link(addrB, addrA, link)
		p.memA, p.memB = p.region(1<<20), p.region(1<<20)
		p.a = p.open(addrA, &Config{ID: 1, Memory: p.memA})
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, AcceptAny: true})
		defer p.close()
		told := func(e *Endpoint, k peerKey) (x session.Epoch) {
			e.epochs.with(k, e.now(), func(all session.Epochs) { x = all.Told() })
			return x
		}
		mine := told(p.a, peerKey{ids{1, 2}, addrB})
		for {
			theirs := told(p.b, peerKey{ids{2, 1}, addrA})
			if session.Tag(mine, theirs) == session.Tag(theirs, mine) {
				break
			}
			p.b.epochs.all = session.Generations{}
		}
		p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB})
		for i := range uint32(30) {
			if err := p.toB.Write(t.Context(), write(64, pattern(int(i), 20_000), 0, i+1)); err != nil {
				t.Fatal(err)
			}
			if err := p.b.Conns()[0].Write(t.Context(), write(64, pattern(int(i), 20_000), 0, i+1)); err != nil {
				t.Fatal(err)
			}
			if x, y := p.memB.Load32(0), p.memA.Load32(0); x != i+1 || y != i+1 {
				t.Fatalf("write %d is done, and the words are %d and %d", i+1, x, y)
			}
		}
		if m := &p.toB.session.tx.m; m.Tag() != session.Tag(m.Local, m.Remote) || p.a.Stats().Completions != 30 || p.b.Stats().Completions != 30 {
			t.Errorf("%d and %d completions, in a session of %#x and %#x", p.a.Stats().Completions, p.b.Stats().Completions, m.Local, m.Remote)
		}
		p.restartB(Config{AcceptAny: true})
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 99)); !errors.Is(err, ErrPeerRestarted) {
			t.Errorf("the peer started again: %v", err)
		}
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 100)); err != nil || p.memB.Load32(0) != 100 {
			t.Errorf("in the next session: %v", err)
		}
	})
}
